// Shared by the ops that only move elements: x -> out by one strided copy, and the check of an axis
// attribute.
#pragma once

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {

class CopyKernel final : public kernel::Kernel {
 public:
  // The dimensions are those of out; start is the element of x where index 0 lies.
  CopyKernel(kernel::Prepare& p, const std::vector<StridedCopy::Dim>& dims, int64_t start = 0)
      : x_(p.input("x")),
        out_(p.output("out")),
        start_(start * static_cast<int64_t>(size_of(p.in("x").dtype))),
        copy_(size_of(p.in("x").dtype), dims) {}

  void run(const kernel::Run& r) override { copy_.run(r.in<char>(x_) + start_, r.raw(out_)); }
  std::string_view implementation() const override { return copy_.kind(); }

 private:
  kernel::Slot x_, out_;
  int64_t start_;
  StridedCopy copy_;
};

// The axis in [0, rank); anything else is an error of the user.
inline int checked_axis(const ir::Infer& c, std::string_view slot, int64_t axis, int rank) {
  const int out = normalize_axis(axis, rank);
  c.check(out >= 0 && out < rank, c.show(slot), "; axis must be in [", -rank, ", ", rank, "), got ",
          axis);
  return out;
}

inline int checked_axis(const ir::Infer& c, std::string_view slot) {
  return checked_axis(c, slot, c.attr<int64_t>("axis"), c.in(slot).shape.rank());
}

}  // namespace fleetx::ops
