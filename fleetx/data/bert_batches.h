// Samples for BERT's pre-training: [CLS] first part [SEP] second part [SEP], some words hidden.
//
// Feeds of a batch of b rows, padded to L tokens, with at most K hidden words a row:
//
//   src_ids, pos_ids, sent_ids  i64 [b,L]      words, places, 0 for the first part and 1 for the
//   second input_mask                  f32 [b,1,1,L]  added to attention scores: 0, and -1e9 for
//   padding mask_pos, mask_label        i64 [bK], [bK,1]  hidden words: places in the flattened
//   batch; words mask_weight                 f32 [bK,1]     1, and 0 for those that only fill up
//   the row labels                      i64 [b,1]      1: the second part follows the first
//
// K follows from L, so that batches of the same b and L have the same shapes.
#pragma once

#include <memory>

#include "fleetx/data/masking.h"
#include "fleetx/data/sentence_pairs.h"
#include "fleetx/data/text_batches.h"

namespace fleetx::data {

struct BertBatchOptions {
  TextBatchOptions text{};
  int64_t max_length = 128;
  double short_rate = 0.1;
  double mask_rate = 0.15;
};

class BertBatches final : public TextBatches {
 public:
  // shared_ptr, because training and test may use the same corpus.
  BertBatches(std::shared_ptr<const TextCorpus> corpus, const Vocabulary& vocabulary,
              const BertBatchOptions& options);

 private:
  std::vector<int32_t> prepare(int64_t epoch) override;
  Batch make(const LengthBatch& batch) const override;
  void write_row(const SentencePair& pair, int64_t length, int64_t* words, int64_t* sentences,
                 float* mask) const;

  std::shared_ptr<const TextCorpus> corpus_;
  BertBatchOptions options_;
  Masking masking_;
  std::vector<SentencePair> pairs_;
};

}  // namespace fleetx::data
