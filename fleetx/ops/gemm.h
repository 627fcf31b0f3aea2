// Products of row-major f32 matrices by oneDNN's sgemm, for fc, matmul and attention. It packs both
// operands, so its speed depends neither on which of them is transposed nor on their leading
// dimensions, and it reads parts of larger matrices in place.
#pragma once

#include <cstdint>

namespace fleetx {

// c [rows, columns] = alpha * a [rows, inner] * b [inner, columns]. A transposed operand stands in
// memory as [inner, rows] or [columns, inner].
struct Gemm {
  int64_t rows, inner, columns;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1.0f;
  bool accumulate = false;  // c += instead of c =
  // Distances of rows in memory; 0: the matrix is dense.
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;

  // In the constructor of a kernel: nothing of oneDNN may run before its instruction set is capped.
  static void prepare();
  void run(const float* a, const float* b, float* c) const;
  static const char* implementation() { return "sgemm"; }
};

}  // namespace fleetx
