// The search for the best translation of one sentence: which words follow which of its beams. It
// knows no model; see translator.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fleetx::train {

struct Hypothesis {
  std::vector<int32_t> words;
  double log_probability = 0;
};

class BeamSearch {
 public:
  BeamSearch(int beams, double length_penalty, int32_t end);

  // One word more. probabilities and words: for each beam its `choices` likeliest next words, in
  // falling order. At least 2 * beams choices, or all words, leave no candidate out.
  void advance(std::span<const float> probabilities, std::span<const int64_t> words, int choices);
  // A search is done when as many translations are finished as there are beams and the best of them
  // beats the one that is under way, if it ended now. One beam: when its likeliest word is the end.
  // stop() ends the search; where nothing is finished, what is under way counts as it is.
  bool done() const { return done_; }
  void stop();

  // Of beam i after the last advance(): which beam it comes from, and its last word. Where there
  // are fewer translations than beams (after the end, or at first), beams repeat.
  int parent(int i) const { return parents_[static_cast<size_t>(i)]; }
  int32_t last(int i) const { return lasts_[static_cast<size_t>(i)]; }

  // Of those that are finished; normalized() is their order.
  const Hypothesis& best() const;
  double normalized(const Hypothesis& h) const;

 private:
  struct Candidate {
    int beam;
    int32_t word;
    double log_probability;
  };
  std::vector<Candidate> candidates(std::span<const float> probabilities,
                                    std::span<const int64_t> words, int choices) const;

  int beams_;
  double length_penalty_;
  int32_t end_;
  bool done_ = false;
  std::vector<Hypothesis> live_, finished_;
  std::vector<int> parents_;
  std::vector<int32_t> lasts_;
};

}  // namespace fleetx::train
