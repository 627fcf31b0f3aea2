// Products of row-major f32 matrices for fc, matmul and attention: large ones by tiles where the
// CPU has them (gemm_amx.h), else by Strassen's algorithm (gemm_strassen.h); others by oneDNN's
// sgemm. All pack their operands, so speed depends neither on which of them is transposed nor on
// their leading dimensions, and parts of larger matrices are read in place.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fleetx/ops/lib/element_loop.h"

namespace fleetx::ops {

// c [rows, columns] = alpha * a [rows, inner] * b [inner, columns]. A transposed operand stands in
// memory as [inner, rows] or [columns, inner].
struct Gemm {
  int64_t rows, inner, columns;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1.0f;
  bool accumulate = false;  // c += instead of c =
  bool definition = false;  // no Strassen
  // Distances of rows in memory; 0: the matrix is dense.
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;

  // In the constructor of a kernel: nothing of oneDNN may run before its instruction set is capped,
  // and running allocates nothing.
  static void prepare();
  // bias [columns], or null, is added to every row; null with accumulate. act, or null, is applied
  // to the result, which must be dense then.
  void run(const float* a, const float* b, float* c, const float* bias = nullptr,
           const ElementLoop* act = nullptr) const;
  // c[i] = a * b[i] + bias[i], one after the other; bias may be empty.
  void run_each(const float* a, std::span<const float* const> b, std::span<float* const> c,
                std::span<const float* const> bias = {}, const ElementLoop* act = nullptr) const;
  // c = the sum of all a[i] * b[i]: one product whose inner dimension stands in several places.
  void run_sum(std::span<const float* const> a, std::span<const float* const> b, float* c) const;
  std::string_view implementation() const;
};

}  // namespace fleetx::ops
