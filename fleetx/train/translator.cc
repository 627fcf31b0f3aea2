#include "fleetx/train/translator.h"

#include <algorithm>
#include <numeric>

#include "fleetx/data/text_batches.h"
#include "fleetx/nn/activation.h"
#include "fleetx/nn/manipulation.h"
#include "fleetx/train/beam_search.h"

namespace fleetx::train {
namespace {

using ir::Names;
using ir::Var;
using models::TransformerOptions;
using nn::KeyValue;

// Lengths grow by so many words, as a new length is a new plan.
constexpr int64_t kLengthStep = 16;

int64_t rounded(int64_t n) { return (n + kLengthStep - 1) / kLengthStep * kLengthStep; }

void add_names(const std::vector<KeyValue>& layers, Names& to) {
  for (const KeyValue& layer : layers) {
    to.push_back(layer.key.name());
    to.push_back(layer.value.name());
  }
}

std::vector<KeyValue> data_by_layer(ir::Builder& b, const std::string& name, int layers,
                                    int64_t hidden, Names& names) {
  std::vector<KeyValue> out;
  for (int i = 0; i < layers; ++i)
    out.push_back({b.data(str(name, "_key_", i), f32, {-1, -1, hidden}),
                   b.data(str(name, "_value_", i), f32, {-1, -1, hidden})});
  add_names(out, names);
  return out;
}

}  // namespace

struct Translator::Encoder {
  ir::Program main, startup;
  Names memory;  // key and value of every layer

  explicit Encoder(const TransformerOptions& o) {
    ir::Builder b(main, startup);
    add_names(models::transformer_memory({.words = b.data("words", i64, {-1, -1}),
                                          .places = b.data("places", i64, {1, -1}),
                                          .mask = b.data("mask", f32, {-1, 1, 1, -1})},
                                         o),
              memory);
  }
};

struct Translator::Step {
  ir::Program main, startup;
  int choices;
  Names past, memory, present;
  Names fetch;  // probabilities, words, then present

  Step(const TransformerOptions& o, int beams, int64_t target_words)
      : choices(static_cast<int>(std::min<int64_t>(2 * beams, target_words))) {
    ir::Builder b(main, startup);
    models::TransformerPast in{.words = b.data("words", i64, {-1, beams}),
                               .place = b.data("place", i64, {1, 1}),
                               .before = data_by_layer(b, "past", o.layers, o.hidden, past),
                               .mask = b.data("past_mask", f32, {1, 1, 1, -1}),
                               .memory = data_by_layer(b, "memory", o.layers, o.hidden, memory),
                               .memory_mask = b.data("memory_mask", f32, {-1, 1, 1, -1})};
    const models::TransformerStep step = models::transformer_step(in, o);
    const Var known =
        target_words == o.target_vocabulary
            ? step.logits
            : nn::slice(step.logits, {.axes = {2}, .starts = {0}, .ends = {target_words}});
    const nn::Ranked best = nn::top_k(nn::softmax(known), choices);
    add_names(step.present, present);
    fetch = {best.values.name(), best.indices.name()};
    fetch.insert(fetch.end(), present.begin(), present.end());
  }
};

// Sentences that are translated together, and the keys and values of their translations so far.
struct Translator::Batch {
  int64_t rows, beams, hidden, capacity = 0;
  std::vector<BeamSearch> searches;
  std::vector<Tensor> past;  // key and value of every layer: [rows * beams, capacity, hidden]

  // Room for the place, kept in order.
  void reserve(int64_t place, size_t tensors) {
    if (place < capacity) return;
    const int64_t more = rounded(place + 1);
    if (past.empty()) past.resize(tensors);
    for (Tensor& t : past) {
      const Tensor larger(f32, {rows * beams, more, hidden});
      for (int64_t row = 0; capacity > 0 && row < rows * beams; ++row)
        std::copy_n(t.data<float>().data() + row * capacity * hidden, capacity * hidden,
                    larger.data<float>().data() + row * more * hidden);
      t = larger;
    }
    capacity = more;
  }

  Tensor mask(int64_t place) const {
    const Tensor out(f32, {1, 1, 1, capacity + 1});
    std::fill_n(out.data<float>().data() + place, capacity - place, data::kHiddenScore);
    return out;
  }

  Tensor last_words(int64_t place, int32_t begin) const {
    const Tensor out(i64, {rows, beams});
    int64_t* to = out.data<int64_t>().data();
    for (const BeamSearch& search : searches)
      for (int i = 0; i < beams; ++i) *to++ = place == 0 ? begin : search.last(i);
    return out;
  }

  // The beams are continued as the searches say: keys and values move along.
  void keep(int64_t place, const std::vector<Tensor>& present) {
    std::vector<float> moved(static_cast<size_t>(beams * (place + 1) * hidden));
    for (size_t t = 0; t < past.size(); ++t) {
      for (int64_t row = 0; row < rows; ++row) {
        const BeamSearch& search = searches[static_cast<size_t>(row)];
        float* const all = past[t].data<float>().data() + row * beams * capacity * hidden;
        const float* const last = present[t].data<float>().data() + row * beams * hidden;
        for (int64_t i = 0; i < beams; ++i)
          std::copy_n(last + i * hidden, hidden, all + (i * capacity + place) * hidden);
        bool same = true;
        for (int i = 0; i < beams; ++i) same = same && search.parent(i) == i;
        if (same) continue;
        const int64_t length = (place + 1) * hidden;
        for (int i = 0; i < beams; ++i)
          std::copy_n(all + search.parent(i) * capacity * hidden, length,
                      moved.data() + i * length);
        for (int64_t i = 0; i < beams; ++i)
          std::copy_n(moved.data() + i * length, length, all + i * capacity * hidden);
      }
    }
  }

  bool done() const {
    return std::ranges::all_of(searches, [](const BeamSearch& s) { return s.done(); });
  }
};

Translator::Translator(TransformerOptions model, runtime::Scope& scope, Marks marks)
    : model_(std::move(model)), scope_(scope), marks_(marks) {
  model_.dropout = 0;
  if (marks_.target_words == 0) marks_.target_words = model_.target_vocabulary;
  check_arg(marks_.target_words <= model_.target_vocabulary, "a vocabulary of ",
            marks_.target_words, " words; the model has ", model_.target_vocabulary);
  encoder_ = std::make_unique<Encoder>(model_);
}

Translator::~Translator() = default;

Translator::Step& Translator::step_for(int beams) {
  std::unique_ptr<Step>& step = steps_[beams];
  if (!step) step = std::make_unique<Step>(model_, beams, marks_.target_words);
  return *step;
}

std::vector<Translation> Translator::translate_batch(
    const std::vector<const std::vector<int32_t>*>& part, const TranslateOptions& o) {
  const auto rows = static_cast<int64_t>(part.size());
  size_t longest = 0;
  for (const auto* sentence : part) longest = std::max(longest, sentence->size());
  const int64_t length = rounded(static_cast<int64_t>(longest) + 1);
  const Tensor words(i64, {rows, length}), places(i64, {1, length}),
      mask(f32, {rows, 1, 1, length});
  std::ranges::fill(words.data<int64_t>(), marks_.source_end);
  std::iota(places.data<int64_t>().begin(), places.data<int64_t>().end(), int64_t{0});
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<int32_t>& sentence = *part[static_cast<size_t>(row)];
    const auto used = static_cast<int64_t>(sentence.size()) + 1;
    std::ranges::copy(sentence, words.data<int64_t>().begin() + row * length);
    std::fill_n(mask.data<float>().begin() + row * length + used, length - used,
                data::kHiddenScore);
  }
  const std::vector<Tensor> memory =
      executor_.run(encoder_->main, scope_, {{"words", words}, {"places", places}, {"mask", mask}},
                    encoder_->memory);

  Step& step = step_for(o.beams);
  Batch batch{.rows = rows, .beams = o.beams, .hidden = model_.hidden, .searches = {}, .past = {}};
  for (int64_t row = 0; row < rows; ++row)
    batch.searches.emplace_back(o.beams, o.length_penalty, marks_.target_end);
  const int64_t most = std::min(o.max_length, 2 * static_cast<int64_t>(longest) + 50);
  for (int64_t place = 0; place < most && !batch.done(); ++place) {
    batch.reserve(place, step.past.size());
    runtime::Feeds feeds{{"words", batch.last_words(place, marks_.target_begin)},
                         {"place", Tensor::of<int64_t>({1, 1}, {place})},
                         {"past_mask", batch.mask(place)},
                         {"memory_mask", mask}};
    for (size_t i = 0; i < step.past.size(); ++i) {
      feeds.emplace_back(step.past[i], batch.past[i]);
      feeds.emplace_back(step.memory[i], memory[i]);
    }
    std::vector<Tensor> out = executor_.run(step.main, scope_, feeds, step.fetch);
    const auto width = static_cast<size_t>(o.beams * step.choices);
    for (size_t row = 0; row < batch.searches.size(); ++row)
      batch.searches[row].advance(out[0].data<float>().subspan(row * width, width),
                                  out[1].data<int64_t>().subspan(row * width, width), step.choices);
    batch.keep(place, {out.begin() + 2, out.end()});
  }
  std::vector<Translation> result;
  for (BeamSearch& search : batch.searches) {
    search.stop();
    result.push_back({search.best().words, search.normalized(search.best())});
  }
  return result;
}

std::vector<Translation> Translator::translate(const std::vector<std::vector<int32_t>>& sentences,
                                               const TranslateOptions& o) {
  check_arg(o.beams >= 1, "beams is ", o.beams, "; must be at least 1");
  check_arg(o.batch >= 1 && o.max_length >= 1, "batch is ", o.batch, " and max_length ",
            o.max_length, "; both must be positive");
  for (size_t i = 0; i < sentences.size(); ++i)
    check_arg(!sentences[i].empty(), "sentence ", i, " is empty; nothing to translate");
  // Sentences of similar length together: little is padded.
  std::vector<size_t> order(sentences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return sentences[i].size(); });
  std::vector<Translation> out(sentences.size());
  const auto size = static_cast<size_t>(o.batch);
  for (size_t begin = 0; begin < order.size(); begin += size) {
    const std::span<const size_t> ids(order.data() + begin, std::min(size, order.size() - begin));
    std::vector<const std::vector<int32_t>*> part;
    for (const size_t i : ids) part.push_back(&sentences[i]);
    std::vector<Translation> done = translate_batch(part, o);
    for (size_t i = 0; i < ids.size(); ++i) out[ids[i]] = std::move(done[i]);
  }
  return out;
}

}  // namespace fleetx::train
