// Products of f32 matrices on CPUs that multiply tiles of bf16 (AMX). An f32 is the exact sum of
// three bf16, its upper, middle and lower eight bits:
//
//   x = x0 + x1 + x2,  |x1| <= 2^-8 |x|,  |x2| <= 2^-16 |x|
//   x y = x0 y0 + (x0 y1 + x1 y0) + (x0 y2 + x1 y1 + x2 y0) + less than 2^-22 |x y|
//
// Products of bf16 are exact in f32 and their sums are f32, so six products of tiles give one of
// f32 with the error of f32 sums (tested against f64), 1.5 to 1.8 times as fast as vectors do. The
// result does not depend on the number of threads. Infinite values give NaN.
#pragma once

#include <cstdint>

namespace fleetx::ops::amx {

// Where the elements of a dimension stand: runs of `run` of them, `stride` apart; from one run to
// the next it is `jump`, or runs begin at `starts`, which has one more than there are runs.
struct Axis {
  int64_t stride, run = INT64_MAX, jump = 0;
  const int64_t* starts = nullptr;

  int64_t start(int64_t of) const { return starts ? starts[of] : of * jump; }
  int64_t offset(int64_t i) const { return start(i / run) + i % run * stride; }
};

// A factor: lines are rows of a or columns of b, and run along the inner dimension of the product.
// One of the strides is 1, with runs of a multiple of 16.
struct Operand {
  const float* data;
  Axis line, inner;
};

// Columns have stride 1 and runs of a multiple of 16.
struct Result {
  float* data;
  Axis row, column;
};

// Columns as in the result; or null.
struct Bias {
  const float* data = nullptr;
  Axis column = {1};
};

// c [rows, columns] = or += alpha * a * b + bias.
struct Product {
  int64_t rows, inner, columns;
  float alpha = 1.0f;
  bool accumulate = false;

  // Whether this CPU has tiles, and the product is large enough for packing to pay.
  bool wanted() const;
  // bias must be null where the product accumulates.
  void run(const Operand& a, const Operand& b, const Result& c, const Bias& bias = {}) const;
};

// Gives the threads their memory for packing.
void prepare();

}  // namespace fleetx::ops::amx
