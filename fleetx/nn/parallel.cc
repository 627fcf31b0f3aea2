#include "fleetx/nn/parallel.h"

#include "fleetx/ir/divided.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/nn/embedding.h"
#include "fleetx/nn/fc.h"
#include "fleetx/nn/loss.h"

namespace fleetx::nn {
namespace {

ir::Attrs in_group(int64_t partitions) {
  return {{"group", ir::kModelAxis}, {"ranks", partitions}};
}

// Startup draws the whole and keeps the part of this rank.
void first_value(const Layer& layer, const ir::VarInfo& part, const Shape& whole,
                 int64_t partitions, const ir::Initializer& init) {
  ir::Rewriter startup(layer.builder().startup());
  if (startup.program().find(part.name) != nullptr) return;
  startup.add_var(part);
  const auto append = [&](const std::string& type, const ir::Names& in, const std::string& out,
                          ir::Attrs attrs) {
    ir::Rewriter::NewOp op{.type = type,
                           .outputs = {{"out", {out}}},
                           .attrs = std::move(attrs),
                           .name = part.name,
                           .loc = layer.builder().loc()};
    if (!in.empty()) op.inputs = {{"x", in}};
    startup.append(op);
  };
  const auto made = [&](const Shape& shape) {
    ir::Attrs attrs = init.attrs;
    const ir::OpDef& def = ir::op_def(init.op);
    if (def.find_attr("shape") != nullptr) attrs.insert_or_assign("shape", ir::Attr(shape));
    if (def.find_attr("dtype") != nullptr)
      attrs.insert_or_assign("dtype", ir::Attr(part.type.dtype));
    return attrs;
  };
  if (init.op == "fill")  // every part of a constant is that constant
    return append(init.op, {}, part.name, made(part.type.shape));
  const std::string all = part.name + std::string(ir::kWholeSuffix);
  append(init.op, {}, all, made(whole));
  layer.check(startup.program().var(all).type.shape == whole, "the initializer makes ",
              startup.program().var(all).type, ", the whole of '", part.name, "' is ", whole);
  ir::Attrs attrs = in_group(partitions);
  attrs.emplace("axis", part.placement.dim);
  append("group_part", {all}, part.name, std::move(attrs));
}

// The part of this rank of a parameter.
Var divided(const Layer& layer, std::string_view suffix, const Shape& whole, int dim,
            int64_t partitions, const ParamAttr& attr, const Init& fallback, DType dtype) {
  layer.check(!attr.is_distributed, "a parameter that the ranks of '", ir::kModelAxis,
              "' divide cannot be on parameter servers; leave is_distributed out");
  ir::VarInfo info;
  info.name = attr.name.empty() ? str(layer.name(), ".", suffix) : attr.name;
  info.placement = ir::Placement::sharded(ir::kModelAxis, dim);
  info.type.dtype = dtype;
  info.type.shape = ir::shard_of(whole, info.placement, static_cast<int>(partitions), info.name);
  info.persistable = info.is_parameter = true;
  info.stop_gradient = !attr.trainable;
  info.attrs = attrs_of(attr);
  ir::Builder& b = layer.builder();
  if (const ir::VarInfo* old = b.main().find(info.name)) {
    layer.check(old->is_parameter && old->type == info.type && old->placement == info.placement,
                "parameter '", info.name, "' is wanted as ", info.type, " ", info.placement,
                ", but the program already has ", old->type, " ", old->placement);
    return b.var(info.name);
  }
  ir::Rewriter(b.main()).add_var(info);
  first_value(layer, info, whole, partitions, (attr.init ? attr.init : fallback)(whole));
  return b.var(info.name);
}

Var linear(const Var& x, const Var& w, const Var& bias) {
  return x.builder().op("fc", {{"x", x}, {"w", w}, {"bias", bias}},
                        {{"num_flatten_dims", x.shape().rank() - 1}});
}

void check_partitions(const Layer& layer, const char* what, int64_t size, int64_t partitions) {
  layer.check(partitions > 0, "num_partitions must be positive, got ", partitions);
  layer.check(size % partitions == 0, "the ", size, " ", what, " cannot be divided into ",
              partitions, " equal partitions; choose a size that is a multiple of ", partitions);
}

}  // namespace

Var parallel_linear(const Var& x, ParallelLinearOptions o, Where where) {
  const int rank = x.shape().rank();
  if (o.partitions == 1 && (o.axis == 0 || o.axis == 1) && rank >= 2 && x.shape().back() == o.rows)
    return fc(x,
              {.size = o.columns,
               .num_flatten_dims = rank - 1,
               .bias = o.bias,
               .weight_attr = o.weight_attr,
               .bias_attr = o.bias_attr,
               .name = o.name},
              where);
  const Layer layer(x.builder(), o.name, "fc", where);
  layer.check(o.rows > 0 && o.columns > 0, "size must be positive, got (", o.rows, ", ", o.columns,
              ")");
  layer.check(o.axis == 0 || o.axis == 1, "axis must be 0 (rows) or 1 (columns), got ", o.axis);
  const bool by_rows = o.axis == 0;
  check_partitions(layer, by_rows ? "rows" : "columns", by_rows ? o.rows : o.columns, o.partitions);
  const int64_t width = rank >= 2 ? x.shape().back() : -1, part = o.rows / o.partitions;
  const bool is_part = by_rows && width == part;
  layer.check(width == o.rows || is_part, "x '", x.name(), "' is ", x.type(),
              "; its width must be ", o.rows,
              by_rows ? str(" or, where it is divided already, ", part) : "",
              ", the rows of the weight");
  layer.check(!by_rows || o.gather_out,
              "gather_out=False by rows (axis 0) would leave every rank with one summand of the "
              "result; use gather_out=True");

  ir::Builder& b = layer.builder();
  const ir::Attrs group = in_group(o.partitions);
  const Var w = divided(layer, "w_0", {o.rows, o.columns}, o.axis, o.partitions, o.weight_attr,
                        init::xavier_uniform(), x.dtype());
  if (by_rows) {
    const Var own = is_part ? x : Var(b.op("group_part", {{"x", x}}, group));
    const Var out = b.op("group_sum", {{"x", linear(own, w, Var())}}, group);
    if (!o.bias) return out;
    // Once, behind the sum.
    const Var bias = layer.parameter("b_0", {o.columns}, o.bias_attr, init::constant(0), x.dtype());
    return b.op("elementwise_add", {{"x", out}, {"y", bias}});
  }
  const Var bias = o.bias ? divided(layer, "b_0", {o.columns}, 0, o.partitions, o.bias_attr,
                                    init::constant(0), x.dtype())
                          : Var();
  const Var own = linear(b.op("group_identity", {{"x", x}}, group), w, bias);
  return o.gather_out ? Var(b.op("group_concat", {{"x", own}}, group)) : own;
}

Var parallel_embedding(const Var& ids, ParallelEmbeddingOptions o, Where where) {
  if (o.partitions == 1)
    return embedding(
        ids, {.rows = o.rows, .dim = o.dim, .weight_attr = o.weight_attr, .name = o.name}, where);
  const Layer layer(ids.builder(), o.name, "embedding", where);
  layer.check(o.rows > 0 && o.dim > 0, "size must be positive, got (", o.rows, ", ", o.dim, ")");
  check_partitions(layer, "rows", o.rows, o.partitions);
  const Var w = divided(layer, "w_0", {o.rows, o.dim}, 0, o.partitions, o.weight_attr,
                        init::xavier_uniform(), f32);
  ir::Builder& b = layer.builder();
  const Var own = b.op("embedding_part", {{"ids", ids}, {"w", w}}, in_group(o.partitions));
  return b.op("group_sum", {{"x", own}}, in_group(o.partitions));
}

Var parallel_softmax_cross_entropy(const Var& logits, const Var& label,
                                   ParallelCrossEntropyOptions o, Where where) {
  if (o.partitions == 1)
    return softmax_cross_entropy(logits, label, {.ignore_index = o.ignore_index}, where);
  ir::Attrs attrs = in_group(o.partitions);
  attrs.emplace("ignore_index", o.ignore_index);
  return call(logits, "softmax_cross_entropy_part", {{"x", logits}, {"label", label}},
              std::move(attrs), where)["out"];
}

}  // namespace fleetx::nn
