#include "fleetx/nn/manipulation.h"

namespace fleetx::nn {
namespace {

Var many(std::string_view op, const std::vector<Var>& xs, int axis, const Where& where) {
  check_arg(!xs.empty(), ir::Loc::of(where), ": ", op, " of no variables");
  return call(xs[0], op, {{"xs", xs}}, {{"axis", axis}}, where);
}

std::vector<Var> cut(const std::string& op, const Var& x, size_t parts, ir::Attrs attrs,
                     const Where& where) {
  const std::string name = x.builder().unique_name(op);
  ir::Names names;
  for (size_t i = 0; i < parts; ++i) names.push_back(str(name, ".tmp_", i));
  return call(x, op, {{"x", x}}, std::move(attrs), where, {{"outs", names}}).all("outs");
}

Ranked ranked(std::string_view op, const Var& x, ir::Attrs attrs, const Where& where) {
  const ir::Results r = call(x, op, {{"x", x}}, std::move(attrs), where);
  return {r["out"], r["indices"]};
}

}  // namespace

Var reshape(const Var& x, ir::Ints shape, Where where) {
  return unary("reshape", x, where, {{"shape", std::move(shape)}});
}
Var flatten(const Var& x, int axis, Where where) {
  return unary("flatten", x, where, {{"axis", axis}});
}
Var flatten_range(const Var& x, int start, int stop, Where where) {
  return unary("flatten_range", x, where, {{"start", start}, {"stop", stop}});
}
Var transpose(const Var& x, ir::Ints perm, Where where) {
  return unary("transpose", x, where, {{"perm", std::move(perm)}});
}
Var squeeze(const Var& x, ir::Ints axes, Where where) {
  return unary("squeeze", x, where, {{"axes", std::move(axes)}});
}
Var unsqueeze(const Var& x, ir::Ints axes, Where where) {
  return unary("unsqueeze", x, where, {{"axes", std::move(axes)}});
}
Var expand(const Var& x, ir::Ints shape, Where where) {
  return unary("expand", x, where, {{"shape", std::move(shape)}});
}
Var tile(const Var& x, ir::Ints repeats, Where where) {
  return unary("tile", x, where, {{"repeats", std::move(repeats)}});
}

Var concat(const std::vector<Var>& xs, int axis, Where where) {
  return many("concat", xs, axis, where);
}
Var stack(const std::vector<Var>& xs, int axis, Where where) {
  return many("stack", xs, axis, where);
}
std::vector<Var> unstack(const Var& x, int axis, Where where) {
  const int rank = x.shape().rank(), at = normalize_axis(axis, rank);
  check_arg(at >= 0 && at < rank && x.shape()[at] > 0, user_line(x.builder(), where),
            ": unstack: dimension ", axis, " of '", x.name(), "' of ", x.type(), " must be known");
  return cut("unstack", x, static_cast<size_t>(x.shape()[at]), {{"axis", axis}}, where);
}
std::vector<Var> split(const Var& x, int parts, int axis, Where where) {
  check_arg(parts > 0, ir::Loc::of(where), ": split into ", parts, " parts");
  return cut("split", x, static_cast<size_t>(parts), {{"num", parts}, {"axis", axis}}, where);
}
std::vector<Var> split(const Var& x, ir::Ints sections, int axis, Where where) {
  const size_t parts = sections.size();
  return cut("split", x, parts, {{"sections", std::move(sections)}, {"axis", axis}}, where);
}

Var slice(const Var& x, SliceOptions o, Where where) {
  ir::Attrs attrs = {{"axes", o.axes}, {"starts", o.starts}, {"ends", o.ends}};
  if (!o.steps.empty()) attrs.emplace("steps", o.steps);
  return unary("slice", x, where, std::move(attrs));
}

Var gather(const Var& x, const Var& index, int axis, Where where) {
  return call(x, "gather", {{"x", x}, {"index", index}}, {{"axis", axis}}, where);
}
Var gather_nd(const Var& x, const Var& index, Where where) {
  return call(x, "gather_nd", {{"x", x}, {"index", index}}, {}, where);
}
Var scatter(const Var& x, const Var& index, const Var& updates, ScatterOptions o, Where where) {
  return call(x, "scatter", {{"x", x}, {"index", index}, {"updates", updates}},
              {{"overwrite", o.overwrite}}, where);
}
Var pad(const Var& x, PadOptions o, Where where) {
  return unary("pad", x, where, {{"paddings", o.paddings}, {"value", o.value}, {"mode", o.mode}});
}

Var where(const Var& condition, const Var& x, const Var& y, Where where) {
  return call(x, "where", {{"cond", condition}, {"x", x}, {"y", y}}, {}, where);
}
Var masked_fill(const Var& x, const Var& mask, double value, Where where) {
  return call(x, "masked_fill", {{"x", x}, {"mask", mask}}, {{"value", value}}, where);
}
Var flip(const Var& x, ir::Ints axes, Where where) {
  return unary("flip", x, where, {{"axes", std::move(axes)}});
}
Var shape_of(const Var& x, Where where) { return unary("shape", x, where); }
Var one_hot(const Var& x, int depth, Where where) {
  return unary("one_hot", x, where, {{"depth", depth}});
}
Var argmax(const Var& x, int axis, Where where) {
  return unary("argmax", x, where, {{"axis", axis}});
}
Var argmin(const Var& x, int axis, Where where) {
  return unary("argmin", x, where, {{"axis", axis}});
}

Ranked top_k(const Var& x, int k, int axis, Where where) {
  return ranked("top_k", x, {{"k", k}, {"axis", axis}}, where);
}
Ranked argsort(const Var& x, ArgsortOptions o, Where where) {
  return ranked("argsort", x, {{"axis", o.axis}, {"descending", o.descending}}, where);
}

}  // namespace fleetx::nn
