#include "fleetx/nn/transformer.h"

#include <cmath>

#include "fleetx/nn/activation.h"
#include "fleetx/nn/fc.h"
#include "fleetx/nn/manipulation.h"
#include "fleetx/nn/math.h"
#include "fleetx/nn/norm.h"
#include "fleetx/nn/source.h"

namespace fleetx::nn {
namespace {

Var project(const Var& x, int64_t size, const std::string& name, const Init& init,
            const std::string& act = "") {
  return fc(x, {.size = size,
                .num_flatten_dims = 2,
                .act = act,
                .weight_attr = {.init = init},
                .name = name});
}

// [batch, length, heads * d] -> [batch, heads, length, d]
Var split_heads(const Var& x, int64_t heads, int64_t d) {
  return transpose(reshape(x, {0, 0, heads, d}), {0, 2, 1, 3});
}

// Dropout needs the attention weights as a variable; without it, one op keeps them in cache.
Var attend(const Var& q, const Var& k, const Var& v, const AttentionOptions& o, Where where) {
  const int64_t hidden = q.shape()[2], d = hidden / o.heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(d));
  if (o.dropout == 0)
    return call(q, "attention", {{"q", q}, {"k", k}, {"v", v}, {"mask", o.mask}},
                {{"heads", o.heads}, {"scale", scale}}, where);
  Var scores = matmul(split_heads(q, o.heads, d), split_heads(k, o.heads, d),
                      {.transpose_y = true, .alpha = scale});
  if (o.mask.defined()) scores = add(scores, o.mask);
  const Var weights = dropout(softmax(scores), {.p = o.dropout});
  const Var context = transpose(matmul(weights, split_heads(v, o.heads, d)), {0, 2, 1, 3});
  return reshape(context, {0, 0, hidden});
}

}  // namespace

Var multi_head_attention(const Var& query, const Var& key, const Var& value, AttentionOptions o,
                         Where where) {
  const Layer layer(query.builder(), o.name, "multi_head_attention", where);
  layer.check(query.shape().rank() == 3 && query.shape()[2] > 0,
              "query must be [batch,length,hidden], got '", query.name(), "' of ", query.type());
  const int64_t hidden = query.shape()[2];
  layer.check(o.heads > 0 && hidden % o.heads == 0, "heads=", o.heads,
              " must divide the width of the query, ", hidden);

  const Var q = project(query, hidden, layer.name() + "_query", o.init);
  const Var k = project(key, hidden, layer.name() + "_key", o.init);
  const Var v = project(value, hidden, layer.name() + "_value", o.init);
  return project(attend(q, k, v, o, where), hidden, layer.name() + "_output", o.init);
}

Var encoder_layer(const Var& x, EncoderLayerOptions o, Where where) {
  const Layer layer(x.builder(), o.name, "encoder_layer", where);
  layer.check(x.shape().rank() == 3 && x.shape()[2] > 0, "x must be [batch,length,hidden], got '",
              x.name(), "' of ", x.type());
  layer.check(o.intermediate > 0, "intermediate must be positive, got ", o.intermediate);
  const auto norm = [&](const Var& v, const char* suffix) {
    return layer_norm(v,
                      {.begin_norm_axis = 2, .epsilon = o.epsilon, .name = layer.name() + suffix});
  };
  // One part with its residual connection.
  const auto residual = [&](const Var& in, const char* norm_name, const auto& part) {
    const Var out = dropout(part(o.pre_norm ? norm(in, norm_name) : in), {.p = o.dropout});
    const Var sum = add(in, out);
    return o.pre_norm ? sum : norm(sum, norm_name);
  };
  const Var attended = residual(x, "_norm_0", [&](const Var& in) {
    return multi_head_attention(in, in, in,
                                {.heads = o.heads,
                                 .dropout = o.attention_dropout,
                                 .mask = o.mask,
                                 .init = o.init,
                                 .name = layer.name() + "_attention"});
  });
  return residual(attended, "_norm_1", [&](const Var& in) {
    const Var wide = project(in, o.intermediate, layer.name() + "_ffn_0", o.init, o.act);
    return project(wide, x.shape()[2], layer.name() + "_ffn_1", o.init);
  });
}

}  // namespace fleetx::nn
