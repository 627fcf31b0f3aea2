// For ops whose kernel knows f32 only: arguments of 16 bits are converted to f32 before it and
// results back after it, in scratch memory of the plan. Other arguments are handed through.
//
//   .kernel(also_half<make>)               where `make` gives the kernel for f32
//   .kernel(also_half<make_new<Softmax>>)  where it is a class
//   .kernel(also_half<make, kBySample>)    a few samples at a time, which stay in cache
//
// Not for kernels that draw random numbers or compute together with other ranks.
#pragma once

#include <memory>
#include <string_view>

#include "fleetx/kernel/kernel.h"

namespace fleetx::ops {

using MakeKernel = std::unique_ptr<kernel::Kernel> (*)(kernel::Prepare&);

// What may be computed for some samples after the others: the first dimension of these arguments
// counts samples. (One that has another size there is handed over as a whole.)
struct BySample {
  std::string_view arguments[10] = {};
  std::string_view sums[2] = {};  // outputs that add up over the samples
};
inline constexpr BySample kAllAtOnce{};

bool has_half(const kernel::Prepare& p);
std::unique_ptr<kernel::Kernel> make_in_f32(kernel::Prepare& p, MakeKernel make,
                                            const BySample& by);

template <MakeKernel make, const BySample& by = kAllAtOnce>
std::unique_ptr<kernel::Kernel> also_half(kernel::Prepare& p) {
  return has_half(p) ? make_in_f32(p, make, by) : make(p);
}

template <class K>
std::unique_ptr<kernel::Kernel> make_new(kernel::Prepare& p) {
  return std::make_unique<K>(p);
}

}  // namespace fleetx::ops
