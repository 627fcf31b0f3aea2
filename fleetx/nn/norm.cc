#include "fleetx/nn/norm.h"

#include "fleetx/nn/activation.h"

namespace fleetx::nn {

Var batch_norm(const Var& x, BatchNormOptions o, Where where) {
  const Layer layer(x.builder(), o.name, "batch_norm", where);
  layer.check(x.shape().rank() >= 2, "x must have a channel dimension, got '", x.name(), "' of ",
              x.type());
  const Shape channels = {x.shape()[1]};
  const auto named = [&](const std::string& given, const char* suffix) {
    return given.empty() ? str(layer.name(), ".", suffix) : given;
  };
  const Var scale = layer.parameter("w_0", channels, o.scale_attr, init::constant(1));
  const Var bias = layer.parameter("b_0", channels, o.bias_attr, init::constant(0));
  ir::Builder& b = layer.builder();
  const Var mean = b.state(named(o.mean_name, "w_1"), f32, channels, 0.0);
  const Var variance = b.state(named(o.variance_name, "w_2"), f32, channels, 1.0);
  const Var out =
      b.op("batch_norm",
           {{"x", x}, {"scale", scale}, {"bias", bias}, {"mean", mean}, {"variance", variance}},
           {{"momentum", o.momentum},
            {"epsilon", o.epsilon},
            {"is_test", o.is_test},
            {"use_global_stats", o.use_global_stats}},
           {{"mean_out", mean}, {"variance_out", variance}});
  return activation(out, o.act, where);
}

Var layer_norm(const Var& x, LayerNormOptions o, Where where) {
  const Layer layer(x.builder(), o.name, "layer_norm", where);
  const int rank = x.shape().rank();
  const int axis = normalize_axis(o.begin_norm_axis, rank);
  layer.check(axis > 0 && axis < rank, "begin_norm_axis must be in [1,", rank - 1, "] for x '",
              x.name(), "' of ", x.type(), ", got ", o.begin_norm_axis);
  Shape normalized;
  for (int i = axis; i < rank; ++i) normalized.push_back(x.shape()[i]);
  layer.check(normalized.known(), "the normalized dimensions of x '", x.name(), "' of ", x.type(),
              " must be known");
  const Shape flat = {normalized.numel()};
  const Var scale = o.scale ? layer.parameter("w_0", flat, o.scale_attr, init::constant(1)) : Var();
  const Var bias = o.bias ? layer.parameter("b_0", flat, o.bias_attr, init::constant(0)) : Var();
  const Var out = layer.builder().op("layer_norm", {{"x", x}, {"scale", scale}, {"bias", bias}},
                                     {{"begin_norm_axis", axis}, {"epsilon", o.epsilon}});
  return activation(out, o.act, where);
}

}  // namespace fleetx::nn
