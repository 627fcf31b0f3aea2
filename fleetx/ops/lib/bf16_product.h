// Products of bf16 by oneDNN's generated code, which uses the CPU's
// instructions for them and sums in f32. As Gemm, but prepared once for the
// slots of a kernel.
#pragma once

#include "fleetx/ops/lib/gemm.h"
#include "fleetx/ops/lib/onednn.h"

namespace fleetx::ops {

class Bf16Product {
 public:
  // Whether the CPU multiplies bf16, a is bf16, and the other types are bf16 or
  // f32. A b of f32 is rounded.
  static bool wanted(const Gemm& g);

  // Dense matrices; bias in the dtype of b, or none.
  Bf16Product(kernel::Prepare& p, const Gemm& g, kernel::Slot a, kernel::Slot b, kernel::Slot c,
              kernel::Slot bias = {});
  void run(const kernel::Run& r);
  std::string_view implementation() const { return product_.implementation(); }

 private:
  onednn::Primitive pack_, product_;
};

}  // namespace fleetx::ops
