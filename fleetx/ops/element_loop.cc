#include "fleetx/ops/element_loop.h"

#include <array>
#include <map>

namespace fleetx {
namespace {

std::map<std::string, MakeLoop, std::less<>>& registry() {
  static std::map<std::string, MakeLoop, std::less<>> loops;
  return loops;
}

}  // namespace

bool ElementLoop::keeps_zero() const {
  // Large enough for one element of any type; a zero is all zero bits in each of them.
  alignas(8) const std::array<char, 8> zero{};
  alignas(8) std::array<char, 8> out{};
  const std::array<const void*, 2> in{zero.data(), zero.data()};
  run(in.data(), out.data(), 1);
  return out == zero;
}

RegisterLoop::RegisterLoop(const std::string& type, MakeLoop make) {
  FLEETX_CHECK(registry().emplace(type, make).second, "two loops for op ", type);
}

std::unique_ptr<ElementLoop> make_element_loop(std::string_view type, const ir::Attrs& attrs,
                                               DType dtype) {
  const auto it = registry().find(type);
  return it == registry().end() ? nullptr : it->second(attrs, dtype);
}

}  // namespace fleetx
