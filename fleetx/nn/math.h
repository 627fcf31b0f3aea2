// Arithmetic on variables, element by element unless said otherwise. See operators.h for + - * /.
#pragma once

#include "fleetx/nn/call.h"

namespace fleetx::nn {

// y's dimensions stand under those of x from `axis` on; -1 aligns the last ones.
struct BinaryOptions {
  int axis = -1;
};
Var add(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());
Var sub(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());
Var mul(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());
Var div(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());
Var maximum(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());
Var minimum(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());
Var pow(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());
Var mod(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());
Var floordiv(const Var& x, const Var& y, BinaryOptions o = {}, Where where = Where::current());

Var exp(const Var& x, Where where = Where::current());
Var log(const Var& x, Where where = Where::current());
Var sqrt(const Var& x, Where where = Where::current());
Var rsqrt(const Var& x, Where where = Where::current());
Var reciprocal(const Var& x, Where where = Where::current());
Var square(const Var& x, Where where = Where::current());
Var abs(const Var& x, Where where = Where::current());
Var sign(const Var& x, Where where = Where::current());
Var floor(const Var& x, Where where = Where::current());
Var ceil(const Var& x, Where where = Where::current());
Var round(const Var& x, Where where = Where::current());
Var sin(const Var& x, Where where = Where::current());
Var cos(const Var& x, Where where = Where::current());
Var pow(const Var& x, double factor, Where where = Where::current());
Var clip(const Var& x, double min, double max, Where where = Where::current());
Var scale(const Var& x, double scale, double bias = 0.0, Where where = Where::current());
Var cumsum(const Var& x, int axis = -1, Where where = Where::current());
Var sum(const std::vector<Var>& xs, Where where = Where::current());  // of variables of one shape

struct MatmulOptions {
  bool transpose_x = false;
  bool transpose_y = false;
  double alpha = 1.0;  // factor on the product
};
// Over the last two dimensions; those before are batches and broadcast.
Var matmul(const Var& x, const Var& y, MatmulOptions o = {}, Where where = Where::current());

struct ReduceOptions {
  ir::Ints dim = {};  // empty: all, giving [1]
  bool keep_dim = false;
};
Var reduce_sum(const Var& x, ReduceOptions o = {}, Where where = Where::current());
Var reduce_mean(const Var& x, ReduceOptions o = {}, Where where = Where::current());
Var reduce_max(const Var& x, ReduceOptions o = {}, Where where = Where::current());
Var reduce_min(const Var& x, ReduceOptions o = {}, Where where = Where::current());
Var reduce_prod(const Var& x, ReduceOptions o = {}, Where where = Where::current());
Var mean(const Var& x, Where where = Where::current());  // of all elements: [1]

}  // namespace fleetx::nn
