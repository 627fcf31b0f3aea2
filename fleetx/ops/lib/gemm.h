// Products of row-major matrices for fc, matmul and attention: large ones by tiles where the CPU
// has them (gemm_amx.h), else by Strassen's algorithm (gemm_strassen.h); others by oneDNN's sgemm.
// All pack their operands, so speed depends neither on which of them is transposed nor on their
// leading dimensions, and parts of larger matrices are read in place. Matrices of 16-bit floats are
// converted to f32 while they are packed by Strassen's algorithm, else some rows at a time.
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
  // Distances of rows in memory; 0: the matrix is dense, as one of 16 bits must be.
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  // f32, bf16 or f16. Sums are f32, and a result of 16 bits is rounded once.
  DType type_a = f32, type_b = f32, type_c = f32;

  // In the constructor of a kernel: nothing of oneDNN may run before its instruction set is capped,
  // and running allocates nothing.
  static void prepare();
  // Floats of scratch memory that a run with so many results needs; 0 where all types are f32.
  int64_t scratch(size_t results = 1) const;
  // bias [columns], or null, is added to every row; null with accumulate. act, or null, is applied
  // to the result, in its type; it must be dense then.
  void run(const void* a, const void* b, void* c, const float* bias = nullptr,
           const ElementLoop* act = nullptr, float* scratch = nullptr) const;
  // c[i] = a * b[i] + bias[i], one after the other; bias may be empty.
  void run_each(const void* a, std::span<const void* const> b, std::span<void* const> c,
                std::span<const float* const> bias = {}, const ElementLoop* act = nullptr,
                float* scratch = nullptr) const;
  // c = the sum of all a[i] * b[i]: one product whose inner dimension stands in several places.
  void run_sum(std::span<const void* const> a, std::span<const void* const> b, void* c,
               float* scratch = nullptr) const;
  std::string_view implementation() const;

 private:
  bool is_f32() const { return type_a == f32 && type_b == f32 && type_c == f32; }
  void run_strassen(std::span<const void* const> a, std::span<const void* const> b, void* c,
                    const float* bias, float* scratch) const;
  void run_converted(std::span<const void* const> a, std::span<const void* const> b, void* c,
                     const float* bias, float* scratch) const;
};

}  // namespace fleetx::ops
