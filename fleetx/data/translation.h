// Pairs of lines in two languages: two files whose lines belong together, or one file with a tab
// between the two. Tokens of both in memory. Feeds of a batch of b pairs, padded to S and T tokens:
//
//   src_word, src_pos  i64 [b,S]      the source and <e>; places
//   src_mask           f32 [b,1,1,S]  added to attention scores: 0, and -1e9 for padding
//   trg_word, trg_pos  i64 [b,T]      <s> and the target
//   lbl_word           i64 [b,T,1]    the target and <e>
//   lbl_weight         f32 [b,T,1]    1, and 0 for padding
//
// Feeds of a pack with room for S and T tokens of n pairs:
//
//   src_word, src_pos, trg_word, trg_pos  i64 [1,S], [1,T]  one pair after the other
//   src_len, trg_len                      i64 [n]           lengths; 0: no pair
//   lbl_word, lbl_weight                  [1,T,1]           as above
//
// Padding is <e>. Lengths are at most max_length, with <s> or <e>.
#pragma once

#include <memory>

#include "fleetx/data/text_batches.h"
#include "fleetx/data/text_lines.h"
#include "fleetx/data/tokenizer.h"

namespace fleetx::data {

struct TranslationOptions {
  std::string source{};  // with an empty target: lines of `source<tab>target`
  std::string target{};
  int64_t max_length = 256;
  BadText bad_lines = BadText::kStop;   // not UTF-8, a side that is missing or empty
  BadText long_lines = BadText::kSkip;  // replace: cut
};

class TranslationPairs {
 public:
  // The tokenizers may be the same. Files of different numbers of lines and files without a pair
  // are kCorrupt.
  TranslationPairs(const Tokenizer& source, const Tokenizer& target,
                   const TranslationOptions& options);

  int64_t size() const { return static_cast<int64_t>(pairs_.size()); }
  std::span<const int32_t> source(int64_t i) const { return side(i, 0); }
  std::span<const int32_t> target(int64_t i) const { return side(i, 1); }
  int64_t bad_lines() const { return bad_lines_; }
  int64_t long_lines() const { return long_lines_; }

 private:
  struct Pair {
    int64_t begin[2];
    int32_t length[2];
  };
  struct Reader;
  void read_two_files(Reader& to, const TranslationOptions& options);
  void read_one_file(Reader& to, const TranslationOptions& options);
  std::span<const int32_t> side(int64_t i, int which) const {
    const Pair& pair = pairs_[static_cast<size_t>(i)];
    return {tokens_.data() + pair.begin[which], static_cast<size_t>(pair.length[which])};
  }

  std::vector<int32_t> tokens_;
  std::vector<Pair> pairs_;
  int64_t bad_lines_ = 0, long_lines_ = 0;
  std::string first_long_;  // file:line
};

class TranslationBatches final : public TextBatches {
 public:
  TranslationBatches(std::shared_ptr<const TranslationPairs> pairs, const Vocabulary& source,
                     const Vocabulary& target, const TextBatchOptions& options);

 private:
  std::vector<int32_t> prepare(int64_t epoch) override;
  Batch make(const LengthBatch& batch) const override;
  Demands demands(int64_t tokens) override;
  Batch make_pack(const std::vector<int64_t>& samples) const override;

  std::shared_ptr<const TranslationPairs> pairs_;
  int32_t source_end_, target_begin_, target_end_;
  std::vector<int64_t> capacity_;  // of a pack: tokens of the source, of the target, pairs
};

}  // namespace fleetx::data
