// BLEU of translations (Papineni et al. 2002): how many runs of 1 to 4 words are also in the
// reference, with a penalty for short ones; over all sentences, one reference each.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace fleetx::train {

struct Bleu {
  double score = 0;  // 0 to 100
  // Share of runs of 1 to 4 words that are found. Where there are none so long, 1.
  std::array<double, 4> precisions{};
  double brevity = 1;  // the penalty
};

using Sentence = std::vector<std::string>;
// No smoothing: a corpus without a single run of 4 in common has 0. Lists of different lengths, and
// empty ones, are kInvalidArgument.
Bleu bleu(const std::vector<Sentence>& candidates, const std::vector<Sentence>& references);

}  // namespace fleetx::train
