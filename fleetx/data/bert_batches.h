// Samples for BERT's pre-training: [CLS] first part [SEP] second part [SEP], some words hidden.
//
// Feeds of a batch of b rows, padded to L tokens, with at most K hidden words a row:
//
//   src_ids, pos_ids, sent_ids  i64 [b,L]         words; places; 0: first part, 1: second part
//   input_mask                  f32 [b,1,1,L]     added to attention scores: -1e9 for padding, or 0
//   mask_pos, mask_label        i64 [bK], [bK,1]  hidden words: places in the flat batch; words
//   mask_weight                 f32 [bK,1]        1, and 0 for those that only fill up the row
//   labels                      i64 [b,1]         1: the second part follows the first
//
// K follows from L, so that batches of the same b and L have the same shapes.
//
// Feeds of a pack of T tokens, with room for S samples and K hidden words, R = S + K:
//
//   src_ids, pos_ids, sent_ids         i64 [1,T]     one sample after the other
//   seq_len                            i64 [S]       lengths; 0: no sample
//   read_pos, read_len                 i64 [R], [S]  places that are read: of each sample the first
//                                                    and those of hidden words; how many they are
//   seq_first                          i64 [S]       where samples begin, counted among read_pos
//   mask_pos, mask_label, mask_weight  [K], [K,1]    as above; places counted among read_pos
//   labels, label_weight               [S,1]         as above; f32 1, or 0: there is no sample
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
  bool fill = true;  // false: a sample has two sentences, see sentence_pairs.h
};

class BertBatches final : public TextBatches {
 public:
  // shared_ptr, because training and test may use the same corpus.
  BertBatches(std::shared_ptr<const TextCorpus> corpus, const Vocabulary& vocabulary,
              const BertBatchOptions& options);

 private:
  std::vector<int32_t> prepare(int64_t epoch) override;
  Batch make(const LengthBatch& batch) const override;
  Demands demands(int64_t tokens) override;
  Batch make_pack(const std::vector<int64_t>& samples) const override;
  void write_row(const SentencePair& pair, int64_t* words, int64_t* sentences) const;
  // Hides words of a sample that begins at `words`.
  std::vector<Masking::Hidden> hide(int64_t sample, int64_t* words) const;

  std::shared_ptr<const TextCorpus> corpus_;
  BertBatchOptions options_;
  Masking masking_;
  std::vector<SentencePair> pairs_;
  std::vector<int64_t> capacity_;  // of a pack: tokens, hidden words, samples
};

}  // namespace fleetx::data
