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
  pairs_ = sentence_pairs(
      *corpus_,
      {.max_length = options_.max_length, .short_rate = options_.short_rate, .seed = seed()},
      epoch);
  std::vector<int32_t> lengths;
  lengths.reserve(pairs_.size());
  for (const SentencePair& pair : pairs_) lengths.push_back(pair.length());
  return lengths;
}

void BertBatches::write_row(const SentencePair& pair, int64_t length, int64_t* words,
                            int64_t* sentences, float* mask) const {
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
  std::fill(words + at, words + length, masking_.pad());
  std::fill(mask + at, mask + length, kHiddenScore);
}

Batch BertBatches::make(const LengthBatch& batch) const {
  const auto rows = static_cast<int64_t>(batch.samples.size());
  const int64_t length = batch.length, most = masking_.count(length - 3);
  const Tensor words(DType::kI64, {rows, length}), places(DType::kI64, {rows, length}),
      sentences(DType::kI64, {rows, length}), mask(DType::kF32, {rows, 1, 1, length}),
      positions(DType::kI64, {rows * most}), hidden(DType::kI64, {rows * most, 1}),
      weights(DType::kF32, {rows * most, 1}), follows(DType::kI64, {rows, 1});
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t sample = batch.samples[static_cast<size_t>(r)];
    const SentencePair& pair = pairs_[static_cast<size_t>(sample)];
    int64_t* const row = words.data<int64_t>().data() + r * length;
    write_row(pair, length, row, sentences.data<int64_t>().data() + r * length,
              mask.data<float>().data() + r * length);
    int64_t* const place = places.data<int64_t>().data() + r * length;
    std::iota(place, place + length, int64_t{0});
    follows.data<int64_t>()[static_cast<size_t>(r)] = pair.follows;
    const Philox random(seed(),
                        mix(mix(stable_hash("masked words"), static_cast<uint64_t>(epoch())),
                            static_cast<uint64_t>(sample)));
    auto at = static_cast<size_t>(r * most);
    for (const Masking::Hidden& h :
         masking_.hide({row, static_cast<size_t>(pair.length())}, random)) {
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

}  // namespace fleetx::data
