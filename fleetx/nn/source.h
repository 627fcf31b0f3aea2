// New variables from nothing, copies and conversions, random values.
#pragma once

#include <string>

#include "fleetx/nn/call.h"

namespace fleetx::nn {

Var fill(ir::Builder& builder, Shape shape, double value, DType dtype = f32,
         Where where = Where::current());
Var fill_like(const Var& x, double value, Where where = Where::current());
Var arange(ir::Builder& builder, double start, double end, double step = 1.0, DType dtype = i64,
           Where where = Where::current());
Var cast(const Var& x, DType dtype, Where where = Where::current());
Var assign(const Var& x, Where where = Where::current());

// Other values in every step; the seed 0 means that of the program.
Var uniform(ir::Builder& builder, Shape shape, double low, double high, int64_t seed = 0,
            Where where = Where::current());
Var gaussian(ir::Builder& builder, Shape shape, double mean, double std, int64_t seed = 0,
             Where where = Where::current());
Var randint(ir::Builder& builder, Shape shape, int64_t low, int64_t high, int64_t seed = 0,
            Where where = Where::current());  // i64 in [low, high)

struct DropoutOptions {
  double p = 0.5;  // share of elements that become 0
  bool is_test = false;
  std::string mode = "upscale_in_train";  // or "downscale_in_infer"
  int64_t seed = 0;                       // 0: that of the program
};
// Other elements in every step: it reads the step counter. p = 0 adds no op.
Var dropout(const Var& x, DropoutOptions o = {}, Where where = Where::current());

struct PrintOptions {
  std::string message = "";
  int first_n = -1;  // prints in the first n runs only; -1: always
  int summarize = 20;
};
// Passes x through and prints it whenever the program runs.
Var print(const Var& x, PrintOptions o = {}, Where where = Where::current());

}  // namespace fleetx::nn
