#include "fleetx/kernel/reorder.h"

#include "fleetx/base/error.h"

namespace fleetx::kernel {
namespace {

MakeReorder& registered() {
  static MakeReorder make = nullptr;
  return make;
}

}  // namespace

RegisterReorder::RegisterReorder(MakeReorder make) {
  FLEETX_CHECK(registered() == nullptr, "two makers of reorders are registered");
  registered() = make;
}

std::unique_ptr<Kernel> make_reorder(const Desc& from, const Desc& to) {
  FLEETX_CHECK(registered() != nullptr, "no maker of reorders is registered");
  FLEETX_CHECK(from.dtype == to.dtype && from.shape == to.shape, "reorder from ", from.dtype,
               from.shape, " to ", to.dtype, to.shape);
  return registered()(from, to);
}

}  // namespace fleetx::kernel
