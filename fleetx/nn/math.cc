#include "fleetx/nn/math.h"

namespace fleetx::nn {
namespace {

Var binary(std::string_view op, const Var& x, const Var& y, BinaryOptions o, const Where& where) {
  return call(x, op, {{"x", x}, {"y", y}}, {{"axis", o.axis}}, where);
}

Var reduce(std::string_view op, const Var& x, const ReduceOptions& o, const Where& where) {
  return unary(op, x, where, {{"dim", o.dim}, {"keep_dim", o.keep_dim}});
}

}  // namespace

Var add(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_add", x, y, o, where);
}
Var sub(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_sub", x, y, o, where);
}
Var mul(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_mul", x, y, o, where);
}
Var div(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_div", x, y, o, where);
}
Var maximum(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_max", x, y, o, where);
}
Var minimum(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_min", x, y, o, where);
}
Var pow(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_pow", x, y, o, where);
}
Var mod(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_mod", x, y, o, where);
}
Var floordiv(const Var& x, const Var& y, BinaryOptions o, Where where) {
  return binary("elementwise_floordiv", x, y, o, where);
}

Var exp(const Var& x, Where where) { return unary("exp", x, where); }
Var log(const Var& x, Where where) { return unary("log", x, where); }
Var sqrt(const Var& x, Where where) { return unary("sqrt", x, where); }
Var rsqrt(const Var& x, Where where) { return unary("rsqrt", x, where); }
Var reciprocal(const Var& x, Where where) { return unary("reciprocal", x, where); }
Var square(const Var& x, Where where) { return unary("square", x, where); }
Var abs(const Var& x, Where where) { return unary("abs", x, where); }
Var sign(const Var& x, Where where) { return unary("sign", x, where); }
Var floor(const Var& x, Where where) { return unary("floor", x, where); }
Var ceil(const Var& x, Where where) { return unary("ceil", x, where); }
Var round(const Var& x, Where where) { return unary("round", x, where); }
Var sin(const Var& x, Where where) { return unary("sin", x, where); }
Var cos(const Var& x, Where where) { return unary("cos", x, where); }
Var pow(const Var& x, double factor, Where where) {
  return unary("pow", x, where, {{"factor", factor}});
}
Var clip(const Var& x, double min, double max, Where where) {
  return unary("clip", x, where, {{"min", min}, {"max", max}});
}
Var scale(const Var& x, double scale, double bias, Where where) {
  return unary("scale", x, where, {{"scale", scale}, {"bias", bias}});
}
Var cumsum(const Var& x, int axis, Where where) {
  return unary("cumsum", x, where, {{"axis", axis}});
}
Var sum(const std::vector<Var>& xs, Where where) {
  check_arg(!xs.empty(), ir::Loc::of(where), ": sum of no variables");
  return call(xs[0], "sum", {{"xs", xs}}, {}, where);
}

Var matmul(const Var& x, const Var& y, MatmulOptions o, Where where) {
  return call(x, "matmul", {{"x", x}, {"y", y}},
              {{"transpose_x", o.transpose_x}, {"transpose_y", o.transpose_y}, {"alpha", o.alpha}},
              where);
}

Var reduce_sum(const Var& x, ReduceOptions o, Where where) {
  return reduce("reduce_sum", x, o, where);
}
Var reduce_mean(const Var& x, ReduceOptions o, Where where) {
  return reduce("reduce_mean", x, o, where);
}
Var reduce_max(const Var& x, ReduceOptions o, Where where) {
  return reduce("reduce_max", x, o, where);
}
Var reduce_min(const Var& x, ReduceOptions o, Where where) {
  return reduce("reduce_min", x, o, where);
}
Var reduce_prod(const Var& x, ReduceOptions o, Where where) {
  return reduce("reduce_prod", x, o, where);
}
Var mean(const Var& x, Where where) { return unary("mean", x, where); }

}  // namespace fleetx::nn
