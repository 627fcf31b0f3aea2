// Pairs of sentences as BERT's next-sentence task wants them (Devlin et al. 2018). Sentences of a
// document are collected until they have `target` tokens, max_length - 3 (a tenth of the pairs: any
// number from 2 on). They are cut in two at a random sentence. Half of the time, and where there is
// only one sentence, sentences of another document take the place of the second part, which is then
// the begin of the next pair. What is too long is cut at a random end of the longer part.
//
// The pairs depend on (corpus, seed, epoch) only.
#pragma once

#include "fleetx/data/text_corpus.h"

namespace fleetx::data {

struct PairOptions {
  int64_t max_length = 128;  // with [CLS] and two [SEP]
  double short_rate = 0.1;   // of pairs that are shorter on purpose
  bool fill = true;          // false: a pair has two sentences, whatever their lengths
  uint64_t seed = 0;
};

// Tokens of the corpus: [begin, begin + length), counted from the first of a sentence.
struct Part {
  int64_t sentence = 0;
  int32_t skip = 0, length = 0;
};

struct SentencePair {
  Part first, second;
  bool follows = true;
  int32_t length() const { return first.length + second.length + 3; }
};

// A corpus of one document is kInvalidArgument: there is no other to take sentences from.
std::vector<SentencePair> sentence_pairs(const TextCorpus& corpus, const PairOptions& options,
                                         int64_t epoch);

}  // namespace fleetx::data
