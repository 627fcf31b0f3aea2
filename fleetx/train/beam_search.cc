#include "fleetx/train/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fleetx/base/error.h"

namespace fleetx::train {

BeamSearch::BeamSearch(int beams, double length_penalty, int32_t end)
    : beams_(beams), length_penalty_(length_penalty), end_(end), live_(1) {
  check_arg(beams >= 1, "beams is ", beams, "; must be at least 1");
  parents_.assign(static_cast<size_t>(beams), 0);
  lasts_.assign(static_cast<size_t>(beams), end);
}

std::vector<BeamSearch::Candidate> BeamSearch::candidates(std::span<const float> probabilities,
                                                          std::span<const int64_t> words,
                                                          int choices) const {
  std::vector<Candidate> out;
  for (size_t beam = 0; beam < live_.size(); ++beam) {
    for (size_t i = 0; i < static_cast<size_t>(choices); ++i) {
      const size_t at = beam * static_cast<size_t>(choices) + i;
      const double p = std::max(static_cast<double>(probabilities[at]), 1e-38);
      out.push_back({static_cast<int>(beam), static_cast<int32_t>(words[at]),
                     live_[beam].log_probability + std::log(p)});
    }
  }
  // Stable, so that equal ones come in the order of their beams on every machine.
  std::ranges::stable_sort(out, std::greater<>(), &Candidate::log_probability);
  return out;
}

void BeamSearch::advance(std::span<const float> probabilities, std::span<const int64_t> words,
                         int choices) {
  if (done_) {
    std::iota(parents_.begin(), parents_.end(), 0);  // nothing moves any more
    return;
  }
  std::vector<Hypothesis> next;
  std::vector<int> parents;
  std::vector<int32_t> lasts;
  for (const Candidate& c : candidates(probabilities, words, choices)) {
    if (static_cast<int>(next.size()) == beams_) break;
    Hypothesis h = live_[static_cast<size_t>(c.beam)];
    h.log_probability = c.log_probability;
    if (c.word == end_) {
      finished_.push_back(std::move(h));
      continue;
    }
    h.words.push_back(c.word);
    next.push_back(std::move(h));
    parents.push_back(c.beam);
    lasts.push_back(c.word);
  }
  live_ = std::move(next);
  done_ = live_.empty() || (static_cast<int>(finished_.size()) >= beams_ &&
                            (beams_ == 1 || normalized(best()) >= normalized(live_.front())));
  if (live_.empty()) return;
  for (size_t i = 0; i < parents_.size(); ++i) {
    parents_[i] = parents[std::min(i, parents.size() - 1)];
    lasts_[i] = lasts[std::min(i, lasts.size() - 1)];
  }
}

void BeamSearch::stop() {
  if (!done_ && finished_.empty()) finished_ = live_;
  done_ = true;
}

double BeamSearch::normalized(const Hypothesis& h) const {
  // The end counts as a word.
  const double length = static_cast<double>(h.words.size()) + 1;
  return h.log_probability / std::pow((5.0 + length) / 6.0, length_penalty_);
}

const Hypothesis& BeamSearch::best() const {
  FLEETX_CHECK(!finished_.empty(), "no translation is finished");
  return *std::ranges::max_element(finished_, {},
                                   [this](const Hypothesis& h) { return normalized(h); });
}

}  // namespace fleetx::train
