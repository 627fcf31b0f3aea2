// BERT's masked words. Of n words that may be hidden, k = max(1, floor(rate n + 1/2)) are chosen,
// every set of k equally likely. Of each chosen word, with u uniform in [0,1):
//
//   u < 0.8         [MASK] takes its place
//   0.8 <= u < 0.9  a word of the vocabulary takes its place, each but the special ones equally
//                   likely
//   otherwise       it stays
//
// All numbers follow from (seed, stream) of the generator that is given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleetx/base/rng.h"
#include "fleetx/data/vocabulary.h"

namespace fleetx::data {

class Masking {
 public:
  // A vocabulary without [PAD], [CLS], [SEP], [MASK] is kInvalidArgument, and so is a rate that is
  // not between 0 and 1.
  Masking(const Vocabulary& vocabulary, double rate);

  struct Hidden {
    int32_t place;  // in the row
    int32_t word;   // that was there
  };
  // How many of n words are hidden.
  int64_t count(int64_t n) const;
  // Hides words of a row; [PAD], [CLS] and [SEP] are no words. In the order of their places.
  std::vector<Hidden> hide(std::span<int64_t> row, const Philox& random) const;

  int32_t pad() const { return pad_; }
  int32_t cls() const { return cls_; }
  int32_t sep() const { return sep_; }

 private:
  int64_t any_word(uint32_t bits) const;

  double rate_;
  int64_t vocabulary_;
  int32_t pad_, cls_, sep_, mask_;
  std::vector<int64_t> special_;  // in ascending order
};

// Uniform in [0, n) but for a bias of n / 2^32.
inline uint32_t below(uint32_t bits, uint64_t n) { return static_cast<uint32_t>(bits * n >> 32); }

}  // namespace fleetx::data
