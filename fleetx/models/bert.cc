#include "fleetx/models/bert.h"

#include "fleetx/nn/nn.h"

namespace fleetx::models {
namespace {

// Of the original; it matters for rows of small variance.
constexpr double kEpsilon = 1e-12;

nn::Init weights(const BertOptions& o) { return nn::init::normal(0.0, o.init_std); }

LayerNames names_of(const BertInputs& in, const BertOptions& o) {
  return {in.words.builder(), o.name, "bert", "word_embedding"};
}

Var look_up(const BertInputs& in, const BertOptions& o, const LayerNames& named) {
  return nn::embedding(in.places, {.rows = o.max_positions,
                                   .dim = o.hidden,
                                   .weight_attr = {.init = weights(o)},
                                   .name = named("position_embedding")});
}

// Every sequence has the same positions, so their rows are cut out, not looked up.
Var cut_out(ir::Builder& b, int64_t length, const BertOptions& o, const LayerNames& named) {
  const nn::Layer layer(b, named("position_embedding"), "embedding", Where::current());
  const Var table =
      layer.parameter("w_0", {o.max_positions, o.hidden}, {.init = weights(o)}, weights(o));
  return nn::slice(table, {.axes = {0}, .starts = {0}, .ends = {length}});
}

Var embed(const BertInputs& in, const BertOptions& o, const LayerNames& named) {
  ir::Builder& b = in.words.builder();
  const int64_t length = in.words.shape().rank() == 2 ? in.words.shape()[1] : -1;
  const bool given = in.places.defined();
  check_arg(!in.lengths.defined() || (given && in.read.defined() && in.read_lengths.defined() &&
                                      in.first.defined() && !in.mask.defined()),
            b.loc(), ": bert: lengths need places, read, read_lengths and first, and no mask");
  check_arg(given || (length > 0 && length <= o.max_positions), b.loc(),
            ": bert: words must be [batch,length] with a length of at most ", o.max_positions,
            ", got '", in.words.name(), "' of ", in.words.type());
  const Var words = nn::embedding(in.words, {.rows = o.vocabulary,
                                             .dim = o.hidden,
                                             .sparse = o.sparse_words,
                                             .weight_attr = {.init = weights(o)},
                                             .name = named("word_embedding")});
  const Var sentences = nn::embedding(in.sentences, {.rows = o.sentence_kinds,
                                                     .dim = o.hidden,
                                                     .weight_attr = {.init = weights(o)},
                                                     .name = named("sentence_embedding")});
  const Var sum =
      words + sentences + (given ? look_up(in, o, named) : cut_out(b, length, o, named));
  const Var x = nn::layer_norm(
      sum, {.begin_norm_axis = 2, .epsilon = kEpsilon, .name = named("embedding_norm")});
  return nn::dropout(x, {.p = o.dropout});
}

Var word_logits(const Var& sequence, const Var& positions, const BertOptions& o,
                const LayerNames& named) {
  ir::Builder& b = sequence.builder();
  const Var rows = nn::reshape(sequence, {-1, o.hidden});
  Var x = nn::gather(rows, positions);
  x = nn::fc(x, {.size = o.hidden,
                 .act = "gelu",
                 .weight_attr = {.init = weights(o)},
                 .name = named("word_transform")});
  x = nn::layer_norm(x, {.epsilon = kEpsilon, .name = named("word_transform_norm")});
  const nn::Layer layer(b, named("word_output"), "fc", Where::current());
  const Var bias = layer.parameter("b_0", {o.vocabulary}, {}, nn::init::constant(0));
  return nn::matmul(x, b.var(named("word_embedding") + ".w_0"), {.transpose_y = true}) + bias;
}

BertEncoder encode(const BertInputs& in, const BertOptions& o, const LayerNames& named) {
  BertEncoder out;
  Var x = embed(in, o, named);
  for (int i = 0; i < o.layers; ++i) {
    const bool last = i + 1 == o.layers;
    x = nn::encoder_layer(x, {.heads = o.heads,
                              .intermediate = o.intermediate,
                              .act = "gelu",
                              .dropout = o.dropout,
                              .attention_dropout = in.lengths.defined() ? 0.0 : o.dropout,
                              .epsilon = kEpsilon,
                              .mask = in.mask,
                              .lengths = in.lengths,
                              .read = last ? in.read : Var(),
                              .read_lengths = last ? in.read_lengths : Var(),
                              .init = weights(o),
                              .name = named(str("encoder_", i))});
    out.checkpoints.push_back(x.name());
  }
  out.sequence = x;
  const Var first = in.lengths.defined() ? nn::gather(nn::reshape(x, {-1, o.hidden}), in.first)
                                         : nn::slice(x, {.axes = {1}, .starts = {0}, .ends = {1}});
  out.pooled = nn::fc(first, {.size = o.hidden,
                              .act = "tanh",
                              .weight_attr = {.init = weights(o)},
                              .name = named("pooler")});
  return out;
}

}  // namespace

BertEncoder bert(const BertInputs& in, BertOptions o, Where where) {
  const auto at = in.words.builder().at(ir::Loc::of(where));
  return encode(in, o, names_of(in, o));
}

BertPretraining bert_pretraining(const BertInputs& in, const BertTargets& targets, BertOptions o,
                                 Where where) {
  const auto at = in.words.builder().at(ir::Loc::of(where));
  // The word head gives every row of the table a gradient, so the sum is dense in any case; the
  // part of the lookup is then best added row by row.
  o.sparse_words = true;
  const LayerNames named = names_of(in, o);
  BertEncoder encoder = encode(in, o, named);
  BertPretraining out;
  out.checkpoints = std::move(encoder.checkpoints);
  out.word_logits = word_logits(encoder.sequence, targets.positions, o, named);
  const auto mean_of = [](const Var& losses, const Var& by) {
    return by.defined() ? nn::reduce_sum(losses * by) / nn::reduce_sum(by) : nn::mean(losses);
  };
  out.word_loss =
      mean_of(nn::softmax_cross_entropy(out.word_logits, targets.words), targets.weights);
  out.sentence_logits =
      nn::fc(encoder.pooled,
             {.size = 2, .weight_attr = {.init = weights(o)}, .name = named("sentence_output")});
  out.sentence_loss = mean_of(nn::softmax_cross_entropy(out.sentence_logits, targets.follows),
                              targets.follows_weights);
  out.loss = out.word_loss + out.sentence_loss;
  return out;
}

}  // namespace fleetx::models
