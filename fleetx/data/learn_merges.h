// Byte pair encoding (Sennrich et al. 2016), the learning part: words are sequences of symbols, and
// the pair of neighbours that is met most often becomes one symbol, again and again. Of equally
// frequent pairs the one whose texts are greater is taken (first text first, by code points), as
// subword-nmt does: the result depends on the words only, not on their order.
//
// A pair is counted in every word as often as the word occurs; the words in which a pair occurs are
// known, so that a merge costs what it changes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fleetx::data {

struct CountedWord {
  std::vector<std::string> symbols;
  int64_t count = 0;
};

struct MergeOptions {
  int64_t merges = 0;     // at most
  int64_t min_count = 2;  // rarer pairs are not merged
  // The text of the symbol that two become; another text than every symbol before, or one of them.
  std::function<std::string(const std::string&, const std::string&)> join =
      [](const std::string& a, const std::string& b) { return a + b; };
};

// The pairs, in the order of their merging.
std::vector<std::pair<std::string, std::string>> learn_merges(const std::vector<CountedWord>& words,
                                                              const MergeOptions& options);

}  // namespace fleetx::data
