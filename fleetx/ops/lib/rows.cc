#include "fleetx/ops/lib/rows.h"

#include "fleetx/base/simd.h"

namespace fleetx::ops {
namespace {

template <class T>
bool all_in_range(const T* ids, int64_t n, int64_t limit) {
  bool ok = true;
  const auto end = static_cast<uint64_t>(limit);
  bool* result = &ok;
  vectorized([=] {
    bool good = true;
    for (int64_t i = 0; i < n; ++i)
      good &= static_cast<uint64_t>(static_cast<int64_t>(ids[i])) < end;
    *result = good;
  });
  return ok;
}

}  // namespace

IdInput::IdInput(kernel::Prepare& p, std::string_view slot, int64_t limit, std::string what)
    : slot_(p.input(slot)),
      shape_(p.in(slot).shape),
      n_(p.in(slot).numel()),
      limit_(limit),
      wide_(p.in(slot).dtype == i64),
      where_(str(ir::describe(p.op()), slot, " '", p.op().in(slot).front(), "': ")),
      what_(std::move(what)) {}

Ids IdInput::checked(const kernel::Run& r) const {
  const Ids ids = unchecked(r);
  const bool ok = wide_ ? all_in_range(r.in<int64_t>(slot_), n_, limit_)
                        : all_in_range(r.in<int32_t>(slot_), n_, limit_);
  if (ok) [[likely]]
    return ids;
  for (int64_t i = 0; i < n_; ++i)
    check_arg(ids(i) >= 0 && ids(i) < limit_, where_, "id ", ids(i), " at ", place_in(shape_, i),
              " is out of range: there are ", limit_, " ", what_);
  return ids;
}

std::string place_in(const Shape& shape, int64_t i) {
  Shape at = shape;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    at[d] = i % shape[d];
    i /= shape[d];
  }
  return str(at);
}

}  // namespace fleetx::ops
