// Packs: samples of any lengths that fill a batch of fixed sizes, so that next to nothing is padded
// and all batches have the same shapes. A sample takes of several things (tokens of the source and
// of the target, hidden words, one of the places for sequences); a pack has so much of each.
// Samples come in random order; where the next one does not fit, the longest that fits is taken
// from the `window` that follow it, until none does. The result depends on (demands, options,
// epoch) only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fleetx::data {

// What samples take, and what a pack has of it. The first `token_kinds` are tokens.
struct Demands {
  std::vector<int64_t> capacity{};
  std::vector<int32_t> of_samples{};  // [samples, kinds]
  int64_t token_kinds = 1;

  int64_t kinds() const { return static_cast<int64_t>(capacity.size()); }
  int64_t samples() const { return static_cast<int64_t>(of_samples.size()) / kinds(); }
  int32_t of(int64_t sample, int64_t kind) const {
    return of_samples[static_cast<size_t>(sample * kinds() + kind)];
  }
};

struct PackOptions {
  bool shuffle = true;
  int64_t window = 128;
  uint64_t seed = 0;
};

// n, to a multiple: lists of a pack are a little longer than what fills them.
int64_t rounded_up(double n, int64_t multiple = 8);

// The samples of each pack. A sample that fits no pack is kInvalidArgument.
std::vector<std::vector<int64_t>> packs(const Demands& demands, const PackOptions& options,
                                        int64_t epoch);

// The share of a pass's tokens that is padding.
double padding_share(const Demands& demands, size_t packs);

}  // namespace fleetx::data
