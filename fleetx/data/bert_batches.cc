#include "fleetx/data/bert_batches.h"

#include <algorithm>
#include <numeric>

namespace fleetx::data {

BertBatches::BertBatches(std::shared_ptr<const TextCorpus> corpus, const Vocabulary& vocabulary,
                         const BertBatchOptions& options)
    : TextBatches(options.text),
      corpus_(std::move(corpus)),
      options_(options),
      masking_(vocabulary, options.mask_rate) {
  begin_pass(0);
}

std::vector<int32_t> BertBatches::prepare(int64_t epoch) {
  pairs_ = sentence_pairs(*corpus_,
                          {.max_length = options_.max_length,
                           .short_rate = options_.short_rate,
                           .fill = options_.fill,
                           .seed = seed()},
                          epoch);
  std::vector<int32_t> lengths;
  lengths.reserve(pairs_.size());
  for (const SentencePair& pair : pairs_) lengths.push_back(pair.length());
  return lengths;
}

void BertBatches::write_row(const SentencePair& pair, int64_t* words, int64_t* sentences) const {
  int64_t at = 0;
  const auto put = [&](int64_t word, int64_t sentence) {
    words[at] = word;
    sentences[at++] = sentence;
  };
  put(masking_.cls(), 0);
  int64_t sentence = 0;
  for (const Part& part : {pair.first, pair.second}) {
    const int32_t* tokens = corpus_->tokens(part.sentence, corpus_->sentences()).data() + part.skip;
    for (int32_t i = 0; i < part.length; ++i) put(tokens[i], sentence);
    put(masking_.sep(), sentence++);
  }
}

std::vector<Masking::Hidden> BertBatches::hide(int64_t sample, int64_t* words) const {
  const Philox random(seed(), mix(mix(stable_hash("masked words"), static_cast<uint64_t>(epoch())),
                                  static_cast<uint64_t>(sample)));
  const auto length = static_cast<size_t>(pairs_[static_cast<size_t>(sample)].length());
  return masking_.hide({words, length}, random);
}

Batch BertBatches::make(const LengthBatch& batch) const {
  const auto rows = static_cast<int64_t>(batch.samples.size());
  const int64_t length = batch.length, most = masking_.count(length - 3);
  const Tensor words(DType::kI64, {rows, length}), places(DType::kI64, {rows, length}),
      sentences(DType::kI64, {rows, length}), mask(DType::kF32, {rows, 1, 1, length}),
      positions(DType::kI64, {rows * most}), hidden(DType::kI64, {rows * most, 1}),
      weights(DType::kF32, {rows * most, 1}), follows(DType::kI64, {rows, 1});
  std::ranges::fill(words.data<int64_t>(), masking_.pad());
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t sample = batch.samples[static_cast<size_t>(r)];
    const SentencePair& pair = pairs_[static_cast<size_t>(sample)];
    int64_t* const row = words.data<int64_t>().data() + r * length;
    write_row(pair, row, sentences.data<int64_t>().data() + r * length);
    float* const scores = mask.data<float>().data() + r * length;
    std::fill(scores + pair.length(), scores + length, kHiddenScore);
    int64_t* const place = places.data<int64_t>().data() + r * length;
    std::iota(place, place + length, int64_t{0});
    follows.data<int64_t>()[static_cast<size_t>(r)] = pair.follows;
    auto at = static_cast<size_t>(r * most);
    for (const Masking::Hidden& h : hide(sample, row)) {
      positions.data<int64_t>()[at] = r * length + h.place;
      hidden.data<int64_t>()[at] = h.word;
      weights.data<float>()[at++] = 1.0f;
    }
    for (; at < static_cast<size_t>((r + 1) * most); ++at)
      positions.data<int64_t>()[at] = r * length;
  }
  return {rows,
          {{"src_ids", words},
           {"pos_ids", places},
           {"sent_ids", sentences},
           {"input_mask", mask},
           {"mask_pos", positions},
           {"mask_label", hidden},
           {"mask_weight", weights},
           {"labels", follows}}};
}

Demands BertBatches::demands(int64_t tokens) {
  Demands out;
  int64_t all_tokens = 0, all_hidden = 0;
  int32_t most_hidden = 0;
  for (const SentencePair& pair : pairs_) {
    const auto hidden = static_cast<int32_t>(masking_.count(pair.length() - 3));
    out.of_samples.insert(out.of_samples.end(), {pair.length(), hidden, 1});
    all_tokens += pair.length();
    all_hidden += hidden;
    most_hidden = std::max(most_hidden, hidden);
  }
  if (capacity_.empty()) {
    // Packs differ: a little more than the mean of hidden words, half as much again of samples.
    const double share = static_cast<double>(tokens) / static_cast<double>(all_tokens);
    const double hidden = 1.05 * share * static_cast<double>(all_hidden);
    capacity_ = {tokens, rounded_up(std::max<double>(hidden, most_hidden)),
                 rounded_up(1.5 * share * static_cast<double>(pairs_.size()))};
  }
  out.capacity = capacity_;
  return out;
}

Batch BertBatches::make_pack(const std::vector<int64_t>& samples) const {
  const int64_t length = capacity_[0], most_hidden = capacity_[1], most = capacity_[2];
  const Tensor words(DType::kI64, {1, length}), places(DType::kI64, {1, length}),
      sentences(DType::kI64, {1, length}), lengths(DType::kI64, {most}),
      read(DType::kI64, {most + most_hidden}), read_lengths(DType::kI64, {most}),
      firsts(DType::kI64, {most}), positions(DType::kI64, {most_hidden}),
      hidden(DType::kI64, {most_hidden, 1}), weights(DType::kF32, {most_hidden, 1}),
      follows(DType::kI64, {most, 1}), follows_weights(DType::kF32, {most, 1});
  std::ranges::fill(words.data<int64_t>(), masking_.pad());
  int64_t first = 0;
  size_t reads = 0, hides = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const SentencePair& pair = pairs_[static_cast<size_t>(samples[i])];
    int64_t* const row = words.data<int64_t>().data() + first;
    write_row(pair, row, sentences.data<int64_t>().data() + first);
    int64_t* const place = places.data<int64_t>().data() + first;
    std::iota(place, place + pair.length(), int64_t{0});
    firsts.data<int64_t>()[i] = static_cast<int64_t>(reads);
    read.data<int64_t>()[reads++] = first;
    const std::vector<Masking::Hidden> found = hide(samples[i], row);
    for (const Masking::Hidden& h : found) {
      positions.data<int64_t>()[hides] = static_cast<int64_t>(reads);
      hidden.data<int64_t>()[hides] = h.word;
      weights.data<float>()[hides++] = 1.0f;
      read.data<int64_t>()[reads++] = first + h.place;
    }
    lengths.data<int64_t>()[i] = pair.length();
    read_lengths.data<int64_t>()[i] = static_cast<int64_t>(found.size()) + 1;
    follows.data<int64_t>()[i] = pair.follows;
    follows_weights.data<float>()[i] = 1.0f;
    first += pair.length();
  }
  return {static_cast<int64_t>(samples.size()),
          {{"src_ids", words},
           {"pos_ids", places},
           {"sent_ids", sentences},
           {"seq_len", lengths},
           {"read_pos", read},
           {"read_len", read_lengths},
           {"seq_first", firsts},
           {"mask_pos", positions},
           {"mask_label", hidden},
           {"mask_weight", weights},
           {"labels", follows},
           {"label_weight", follows_weights}}};
}

}  // namespace fleetx::data
