#include "fleetx/nn/transformer.h"

#include <cmath>

#include "fleetx/ir/divided.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/nn/activation.h"
#include "fleetx/nn/fc.h"
#include "fleetx/nn/manipulation.h"
#include "fleetx/nn/math.h"
#include "fleetx/nn/norm.h"
#include "fleetx/nn/source.h"

namespace fleetx::nn {
namespace {

// How ranks of tensor parallel may divide a layer: what follows one by columns works on its own
// part, up to the next by rows.
enum class Divide : uint8_t { kRows, kColumns };

Var project(const Var& x, int64_t size, Divide divide, const std::string& name, const Init& init,
            const std::string& act = "") {
  const Var out = fc(x, {.size = size,
                         .num_flatten_dims = 2,
                         .act = act,
                         .weight_attr = {.init = init},
                         .name = name});
  ir::Rewriter(x.builder().main())
      .edit_var(name + ".w_0")
      .attrs.insert_or_assign(ir::kDivideAttr, static_cast<int>(divide));
  return out;
}

// [batch, length, heads * d] -> [batch, heads, length, d]; as many heads as are there.
Var split_heads(const Var& x, int64_t d) {
  return transpose(reshape(x, {0, 0, -1, d}), {0, 2, 1, 3});
}

// Dropout needs the attention weights as a variable; without it, one op keeps them in cache.
Var attend(const Var& q, const Var& k, const Var& v, const AttentionOptions& o, Where where) {
  const int64_t hidden = q.shape()[2], d = hidden / o.heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(d));
  if (o.dropout == 0)
    return call(q, "attention",
                {{"q", q},
                 {"k", k},
                 {"v", v},
                 {"mask", o.mask},
                 {"q_lengths", o.lengths},
                 {"k_lengths", o.key_lengths.defined() ? o.key_lengths : o.lengths}},
                {{"heads", o.heads}, {"scale", scale}, {"causal", o.causal}}, where);
  Var scores = matmul(split_heads(q, d), split_heads(k, d), {.transpose_y = true, .alpha = scale});
  if (o.mask.defined()) scores = add(scores, o.mask);
  const Var weights = dropout(softmax(scores), {.p = o.dropout});
  const Var context = transpose(matmul(weights, split_heads(v, d)), {0, 2, 1, 3});
  return reshape(context, {0, 0, -1});
}

void check_sequence(const Layer& layer, const Var& x, int64_t intermediate) {
  layer.check(x.shape().rank() == 3 && x.shape()[2] > 0, "x must be [batch,length,hidden], got '",
              x.name(), "' of ", x.type());
  layer.check(intermediate > 0, "intermediate must be positive, got ", intermediate);
}

// residual(x, suffix of its norm, part): one part of a layer with its residual connection.
template <class Options>
auto residual_of(const Layer& layer, const Options& o) {
  const auto norm = [&](const Var& v, const char* suffix) {
    return layer_norm(v,
                      {.begin_norm_axis = 2, .epsilon = o.epsilon, .name = layer.name() + suffix});
  };
  // `rows` of the input are those that the part gives results for.
  return [&, norm](const Var& in, const char* norm_name, const auto& part, const auto& rows) {
    const Var out = dropout(part(o.pre_norm ? norm(in, norm_name) : in), {.p = o.dropout});
    const Var sum = add(rows(in), out);
    return o.pre_norm ? sum : norm(sum, norm_name);
  };
}

Var all_rows(const Var& x) { return x; }

template <class Options>
Var feed_forward(const Var& x, const Layer& layer, const Options& o) {
  const Var wide =
      project(x, o.intermediate, Divide::kColumns, layer.name() + "_ffn_0", o.init, o.act);
  return project(wide, x.shape()[2], Divide::kRows, layer.name() + "_ffn_1", o.init);
}

}  // namespace

KeyValue attention_keys(const Var& key, const Var& value, AttentionOptions o, Where where) {
  const Layer layer(key.builder(), o.name, "multi_head_attention", where);
  layer.check(key.shape().rank() == 3 && key.shape()[2] > 0,
              "key must be [batch,length,hidden], got '", key.name(), "' of ", key.type());
  const int64_t hidden = key.shape()[2];
  return {project(key, hidden, Divide::kColumns, layer.name() + "_key", o.init),
          project(value, hidden, Divide::kColumns, layer.name() + "_value", o.init)};
}

Var attention_to(const Var& query, const KeyValue& keys, AttentionOptions o, Where where) {
  const Layer layer(query.builder(), o.name, "multi_head_attention", where);
  layer.check((!o.causal && !o.lengths.defined()) || o.dropout == 0,
              "causal attention, and attention by lengths, has no dropout of its weights");
  const int64_t hidden = query.shape()[2];
  const Var q = project(query, hidden, Divide::kColumns, layer.name() + "_query", o.init);
  return project(attend(q, keys.key, keys.value, o, where), hidden, Divide::kRows,
                 layer.name() + "_output", o.init);
}

Var multi_head_attention(const Var& query, const Var& key, const Var& value, AttentionOptions o,
                         Where where) {
  const Layer layer(query.builder(), o.name, "multi_head_attention", where);
  layer.check((!o.causal && !o.lengths.defined()) || o.dropout == 0,
              "causal attention, and attention by lengths, has no dropout of its weights");
  layer.check(query.shape().rank() == 3 && query.shape()[2] > 0,
              "query must be [batch,length,hidden], got '", query.name(), "' of ", query.type());
  const int64_t hidden = query.shape()[2];
  layer.check(o.heads > 0 && hidden % o.heads == 0, "heads=", o.heads,
              " must divide the width of the query, ", hidden);

  const Var q = project(query, hidden, Divide::kColumns, layer.name() + "_query", o.init);
  const Var k = project(key, hidden, Divide::kColumns, layer.name() + "_key", o.init);
  const Var v = project(value, hidden, Divide::kColumns, layer.name() + "_value", o.init);
  return project(attend(q, k, v, o, where), hidden, Divide::kRows, layer.name() + "_output",
                 o.init);
}

Var encoder_layer(const Var& x, EncoderLayerOptions o, Where where) {
  const Layer layer(x.builder(), o.name, "encoder_layer", where);
  check_sequence(layer, x, o.intermediate);
  const bool few = o.read.defined();
  layer.check(few == o.read_lengths.defined() && (!few || o.lengths.defined()),
              "read needs read_lengths, and lengths");
  const auto read = [&](const Var& all) {
    const int64_t hidden = x.shape()[2];
    return few ? reshape(gather(reshape(all, {-1, hidden}), o.read), {1, -1, hidden}) : all;
  };
  const auto residual = residual_of(layer, o);
  const auto attend_to_all = [&](const Var& in) {
    return multi_head_attention(read(in), in, in,
                                {.heads = o.heads,
                                 .dropout = o.attention_dropout,
                                 .mask = o.mask,
                                 .lengths = few ? o.read_lengths : o.lengths,
                                 .key_lengths = o.lengths,
                                 .init = o.init,
                                 .name = layer.name() + "_attention"});
  };
  const Var attended = residual(x, "_norm_0", attend_to_all, read);
  return residual(
      attended, "_norm_1", [&](const Var& in) { return feed_forward(in, layer, o); }, all_rows);
}

KeyValue decoder_memory(const Var& encoded, const DecoderLayerOptions& o, Where where) {
  const Layer layer(encoded.builder(), o.name, "decoder_layer", where);
  return attention_keys(encoded, encoded,
                        {.heads = o.heads, .init = o.init, .name = layer.name() + "_memory"},
                        where);
}

DecoderLayer decoder_layer(const Var& x, const KeyValue& memory, DecoderLayerOptions o,
                           Where where) {
  const Layer layer(x.builder(), o.name, "decoder_layer", where);
  check_sequence(layer, x, o.intermediate);
  const int64_t length = x.shape()[1], hidden = x.shape()[2];
  const bool has_past = o.past.key.defined();
  layer.check(!has_past || length > 0, "with a past, the length of x must be known, got ",
              x.type());
  const auto residual = residual_of(layer, o);
  DecoderLayer result;
  const auto look_back = [&](const Var& in) {
    AttentionOptions self{.heads = o.heads,
                          .lengths = o.lengths,
                          .init = o.init,
                          .name = layer.name() + "_attention"};
    if (!has_past) {
      self.causal = true;
      return multi_head_attention(in, in, in, self, where);
    }
    const auto alone = [&](const Var& v) { return reshape(v, {-1, 1, hidden}); };
    const KeyValue own = attention_keys(in, in, self, where);
    result.present = {alone(own.key), alone(own.value)};
    const KeyValue all = {concat({o.past.key, result.present.key}, 1),
                          concat({o.past.value, result.present.value}, 1)};
    self.mask = o.past_mask;
    return reshape(attention_to(alone(in), all, self, where), {-1, length, hidden});
  };
  const Var told = residual(x, "_norm_0", look_back, all_rows);
  const auto look_at_memory = [&](const Var& in) {
    return attention_to(in, memory,
                        {.heads = o.heads,
                         .mask = o.memory_mask,
                         .lengths = o.lengths,
                         .key_lengths = o.memory_lengths,
                         .init = o.init,
                         .name = layer.name() + "_memory"},
                        where);
  };
  const Var seen = residual(told, "_norm_1", look_at_memory, all_rows);
  result.out = residual(
      seen, "_norm_2", [&](const Var& in) { return feed_forward(in, layer, o); }, all_rows);
  return result;
}

}  // namespace fleetx::nn
