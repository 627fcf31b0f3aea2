#include "fleetx/nn/source.h"

namespace fleetx::nn {
namespace {

Var random(std::string_view op, ir::Builder& b, ir::Attrs attrs, const Where& where) {
  const auto at = b.at(ir::Loc::of(where));
  return b.op(op, {{"step", b.step()}}, std::move(attrs));
}

}  // namespace

Var fill(ir::Builder& builder, Shape shape, double value, DType dtype, Where where) {
  const auto at = builder.at(ir::Loc::of(where));
  return builder.op("fill", {}, {{"shape", shape}, {"dtype", dtype}, {"value", value}});
}

Var fill_like(const Var& x, double value, Where where) {
  return call(x, "fill_like", {{"x", x}}, {{"value", value}}, where);
}

Var arange(ir::Builder& builder, double start, double end, double step, DType dtype, Where where) {
  const auto at = builder.at(ir::Loc::of(where));
  return builder.op("arange", {},
                    {{"start", start}, {"end", end}, {"step", step}, {"dtype", dtype}});
}

Var cast(const Var& x, DType dtype, Where where) {
  return call(x, "cast", {{"x", x}}, {{"dtype", dtype}}, where);
}

Var assign(const Var& x, Where where) { return call(x, "assign", {{"x", x}}, {}, where); }

Var uniform(ir::Builder& builder, Shape shape, double low, double high, int64_t seed, Where where) {
  return random("uniform", builder,
                {{"shape", shape}, {"low", low}, {"high", high}, {"seed", seed}}, where);
}

Var gaussian(ir::Builder& builder, Shape shape, double mean, double std, int64_t seed,
             Where where) {
  return random("gaussian", builder,
                {{"shape", shape}, {"mean", mean}, {"std", std}, {"seed", seed}}, where);
}

Var randint(ir::Builder& builder, Shape shape, int64_t low, int64_t high, int64_t seed,
            Where where) {
  return random("randint", builder,
                {{"shape", shape}, {"low", low}, {"high", high}, {"seed", seed}}, where);
}

Var dropout(const Var& x, DropoutOptions o, Where where) {
  if (o.p == 0) return x;
  return call(x, "dropout", {{"x", x}, {"step", x.builder().step()}},
              {{"p", o.p}, {"is_test", o.is_test}, {"mode", o.mode}, {"seed", o.seed}},
              where)["out"];
}

Var print(const Var& x, PrintOptions o, Where where) {
  return call(x, "print", {{"x", x}},
              {{"message", o.message}, {"first_n", o.first_n}, {"summarize", o.summarize}}, where);
}

}  // namespace fleetx::nn
