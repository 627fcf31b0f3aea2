#include "fleetx/models/transformer.h"

#include <cmath>

#include "fleetx/nn/nn.h"

namespace fleetx::models {
namespace {

// Words of one side. Their embedding has a standard deviation of 1 after the factor, as places do.
class Words {
 public:
  Words(ir::Builder& b, const TransformerOptions& o)
      : o_(o), named_(b, o.name, "transformer", "source_embedding") {
    check_arg(o.hidden > 0 && o.hidden % 2 == 0 && o.heads > 0 && o.hidden % o.heads == 0, b.loc(),
              ": transformer: hidden is ", o.hidden, "; must be even and a multiple of heads, ",
              o.heads);
    check_arg(!o.shared_words || o.source_vocabulary == o.target_vocabulary, b.loc(),
              ": transformer: vocabularies of ", o.source_vocabulary, " and ", o.target_vocabulary,
              " words cannot be shared; say shared_words = false");
  }

  std::string operator()(const std::string& layer) const { return named_(layer); }
  std::string source_table() const { return named_("source_embedding"); }
  std::string target_table() const {
    return named_(o_.shared_words ? "source_embedding" : "target_embedding");
  }

  Var embed(const Var& words, const Var& places, const std::string& table, int64_t rows) const {
    const Var rows_of = nn::embedding(
        words, {.rows = rows, .dim = o_.hidden, .weight_attr = {.init = init()}, .name = table});
    return nn::dropout(
        nn::scale(rows_of, std::sqrt(static_cast<double>(o_.hidden))) + sines(places),
        {.p = o_.dropout});
  }

  Var logits(const Var& x) const {
    const nn::Layer layer(x.builder(), target_table(), "embedding", Where::current());
    // A decoder that runs alone has the table, too: the embedding of its words.
    const Var table =
        layer.parameter("w_0", {o_.target_vocabulary, o_.hidden}, {.init = init()}, init());
    return nn::matmul(nn::layer_norm(x, {.begin_norm_axis = 2, .name = named_("decoder_norm")}),
                      table, {.transpose_y = true});
  }

 private:
  nn::Init init() const {
    return nn::init::normal(0.0, 1.0 / std::sqrt(static_cast<double>(o_.hidden)));
  }

  // [1, length, hidden]: sines of wavelengths from 2 pi to 20000 pi, then as many cosines.
  Var sines(const Var& places) const {
    const int64_t half = o_.hidden / 2;
    const Var first = nn::slice(places, {.axes = {0}, .starts = {0}, .ends = {1}});
    const Var place = nn::unsqueeze(nn::cast(first, f32), {2});
    const Var rank = nn::arange(places.builder(), 0.0, static_cast<double>(half), 1.0, f32);
    const Var rate = nn::exp(nn::scale(rank, -std::log(1e4) / static_cast<double>(half)));
    const Var angle = nn::mul(place, rate);
    Var out = nn::concat({nn::sin(angle), nn::cos(angle)}, 2);
    return out.stop_gradient();
  }

  const TransformerOptions& o_;
  LayerNames named_;
};

Var encode(const TransformerSource& in, const TransformerOptions& o, const Words& words,
           ir::Names* checkpoints) {
  Var x = words.embed(in.words, in.places, words.source_table(), o.source_vocabulary);
  for (int i = 0; i < o.layers; ++i) {
    x = nn::encoder_layer(x, {.heads = o.heads,
                              .intermediate = o.intermediate,
                              .dropout = o.dropout,
                              .pre_norm = true,
                              .mask = in.mask,
                              .lengths = in.lengths,
                              .name = words(str("encoder_", i))});
    if (checkpoints) checkpoints->push_back(x.name());
  }
  return nn::layer_norm(x, {.begin_norm_axis = 2, .name = words("encoder_norm")});
}

nn::DecoderLayerOptions decoder_options(const TransformerOptions& o, const Words& words, int i) {
  return {.heads = o.heads,
          .intermediate = o.intermediate,
          .dropout = o.dropout,
          .pre_norm = true,
          .name = words(str("decoder_", i))};
}

}  // namespace

TransformerTraining transformer(const TransformerSource& source, const TransformerTargets& targets,
                                TransformerOptions o, Where where) {
  const auto at = source.words.builder().at(ir::Loc::of(where));
  check_arg(source.lengths.defined() == targets.lengths.defined() &&
                source.lengths.defined() != source.mask.defined(),
            source.words.builder().loc(),
            ": transformer: either a mask, or lengths of the source and of the target");
  const Words words(source.words.builder(), o);
  TransformerTraining out;
  const Var encoded = encode(source, o, words, &out.checkpoints);
  Var x = words.embed(targets.words, targets.places, words.target_table(), o.target_vocabulary);
  for (int i = 0; i < o.layers; ++i) {
    nn::DecoderLayerOptions layer = decoder_options(o, words, i);
    layer.memory_mask = source.mask;
    layer.lengths = targets.lengths;
    layer.memory_lengths = source.lengths;
    x = nn::decoder_layer(x, nn::decoder_memory(encoded, layer), layer).out;
    out.checkpoints.push_back(x.name());
  }
  out.logits = words.logits(x);
  const auto per_word = [&](double smoothing) {
    const Var losses =
        nn::softmax_cross_entropy(out.logits, targets.next, {.smoothing = smoothing});
    return nn::reduce_sum(losses * targets.weights) / nn::reduce_sum(targets.weights);
  };
  out.loss = per_word(o.label_smoothing);
  out.token_loss = o.label_smoothing == 0 ? out.loss : per_word(0);
  return out;
}

std::vector<nn::KeyValue> transformer_memory(const TransformerSource& source, TransformerOptions o,
                                             Where where) {
  const auto at = source.words.builder().at(ir::Loc::of(where));
  const Words words(source.words.builder(), o);
  const Var encoded = encode(source, o, words, nullptr);
  std::vector<nn::KeyValue> memory;
  for (int i = 0; i < o.layers; ++i)
    memory.push_back(nn::decoder_memory(encoded, decoder_options(o, words, i)));
  return memory;
}

TransformerStep transformer_step(const TransformerPast& past, TransformerOptions o, Where where) {
  const auto at = past.words.builder().at(ir::Loc::of(where));
  const Words words(past.words.builder(), o);
  TransformerStep out;
  Var x = words.embed(past.words, past.place, words.target_table(), o.target_vocabulary);
  for (int i = 0; i < o.layers; ++i) {
    nn::DecoderLayerOptions layer = decoder_options(o, words, i);
    layer.memory_mask = past.memory_mask;
    layer.past = past.before.at(static_cast<size_t>(i));
    layer.past_mask = past.mask;
    const nn::DecoderLayer done =
        nn::decoder_layer(x, past.memory.at(static_cast<size_t>(i)), layer);
    x = done.out;
    out.present.push_back(done.present);
  }
  out.logits = words.logits(x);
  return out;
}

}  // namespace fleetx::models
