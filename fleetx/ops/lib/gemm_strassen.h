// Products of large f32 matrices by one step of Strassen's algorithm (1969): with both operands cut
// into quarters, seven products of quarters give what the definition makes of eight.
//
//   M0 = (A00 + A11) (B00 + B11)
//   M1 = (A10 + A11) B00              C00 = M0 + M3 - M4 + M6
//   M2 = A00 (B01 - B11)              C01 = M2 + M4
//   M3 = A11 (B10 - B00)              C10 = M1 + M3
//   M4 = (A00 + A01) B11              C11 = M0 - M1 + M2 + M5
//   M5 = (A10 - A00) (B00 + B01)
//   M6 = (A01 - A11) (B10 + B11)
//
// The sums of A and B are made while they are packed, and quarters are neighbours in c (rows 8,
// columns 24 or 48 apart), so that M0 to M6 are added up in the first-level cache: all that it
// costs is packing seven parts instead of four. The error, relative to the norm of the result, is
// 1.4 to 2 times that of sgemm; but a row or column is only as exact as the one it is paired with,
// and a value that is not finite spoils both. The result does not depend on the number of threads.
//
// Operands of 16 bits are converted to f32 while they are packed; a result of 16 bits is rounded
// once, when the last part of the inner dimension is added.
#pragma once

#include <span>

#include "fleetx/ops/lib/gemm.h"

namespace fleetx::ops::strassen {

// Whether the product is large enough for packing to pay, and the CPU has AVX2.
bool wanted(const Gemm& g);
// Gives the threads their memory for packing.
void prepare();

// In the dtypes of g.
template <class T>
struct Matrix {
  T* data;
  int64_t stride;  // of rows
};
// bias may be null, and must be where g accumulates. `sums`: room for g.rows * g.columns floats,
// where c has 16 bits; a product may begin with what another left there, or leave it to the next.
struct Columns {
  Matrix<const void> b;
  Matrix<void> c;
  const float* bias;
  float* sums = nullptr;
  bool begun = false, goes_on = false;
};
// For each of the columns, at most kMost; a is packed once. The strides in g are not looked at.
inline constexpr size_t kMost = 8;
void run(const Gemm& g, Matrix<const void> a, std::span<const Columns> columns);

}  // namespace fleetx::ops::strassen
