// Batches of samples of similar length, so that little is padded. The samples, in random order, are
// cut into pools; those of a pool are sorted by length and cut into batches; the batches of all
// pools come in random order. The result depends on (lengths, options, epoch) only: n workers take
// batches r, r + n, ... of the same list.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fleetx::data {

struct LengthBatchOptions {
  int64_t batch = 0;       // samples of a batch; or
  int64_t tokens = 0;      // samples x padded length of a batch, at most; one of the two is 0
  int64_t multiple = 8;    // lengths are padded to a multiple: few different shapes to plan for
  int64_t pool = 16384;    // samples
  bool shuffle = true;     // false: in the order of the samples, and batches too
  bool drop_last = false;  // a last batch of fewer samples; with `tokens` there is none to drop
  uint64_t seed = 0;
};

struct LengthBatch {
  std::vector<int64_t> samples;
  int64_t length = 0;  // padded
};

// A sample longer than `tokens` is kInvalidArgument.
std::vector<LengthBatch> length_batches(std::span<const int32_t> lengths,
                                        const LengthBatchOptions& options, int64_t epoch);

// The share of padding in all tokens of the batches.
double padding_share(std::span<const int32_t> lengths, const std::vector<LengthBatch>& batches);

}  // namespace fleetx::data
