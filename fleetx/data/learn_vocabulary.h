// Vocabularies and codes from text: count the words of files, then learn.
//
//   WordCounts words = count_words(files, {.policy = BadText::kSkip});
//   learn_wordpiece(words, {.size = 30000}).save("vocab.txt");
#pragma once

#include <map>

#include "fleetx/data/bpe.h"
#include "fleetx/data/characters.h"
#include "fleetx/data/text_lines.h"

namespace fleetx::data {

using WordCounts = std::map<std::string, int64_t>;

enum class WordRule {
  kBert,    // words.h
  kSpaces,  // what is between spaces, as it is
  kTabs,    // what is between spaces and tabs: of pairs of lines
};

struct CountOptions {
  WordRule rule = WordRule::kBert;
  CharOptions characters{};
  BadText policy = BadText::kStop;
};
// Files without a word are kCorrupt.
WordCounts count_words(const std::vector<std::string>& files, const CountOptions& options);

struct WordPieceTraining {
  int64_t size = 30000;     // tokens, at most
  int64_t min_count = 2;    // of a pair that is merged
  int64_t alphabet = 1000;  // characters: the most frequent; words with others are left out
};
// [PAD] [UNK] [CLS] [SEP] [MASK], the characters as begins of words and as "##" pieces, and then
// the merges of neighbours (learn_merges.h), the most frequent first.
Vocabulary learn_wordpiece(const WordCounts& words, const WordPieceTraining& options);

// As `subword-nmt learn-bpe`.
BpeCodes learn_bpe(const WordCounts& words, int64_t merges, int64_t min_count = 2);
// As `subword-nmt get-vocab`: "token count" a line, the most frequent first, of words that were
// segmented.
std::string bpe_vocabulary_text(const WordCounts& words, const BpeCodes& codes);

}  // namespace fleetx::data
