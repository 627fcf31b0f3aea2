// Passes over samples of different lengths, in batches of similar ones or in packs, for one worker
// of several. Making a batch is copying numbers, so it is done where it is asked for.
//
//   batches.begin_pass(epoch);
//   while (auto batch = batches.next()) ...
//
// All workers get the same number of batches: the list (length_batches.h, packs.h) is filled up
// from its begin, and worker r of n takes batches r, r + n, ... Not thread-safe.
#pragma once

#include <optional>

#include "fleetx/data/dataset.h"
#include "fleetx/data/length_batches.h"
#include "fleetx/data/packs.h"

namespace fleetx::data {

struct TextBatchOptions {
  LengthBatchOptions batches{};
  bool packed = false;  // `tokens` of batches is then what a pack has
  int rank = 0;
  int world = 1;
};

class TextBatches {
 public:
  explicit TextBatches(TextBatchOptions options);
  virtual ~TextBatches() = default;
  TextBatches(const TextBatches&) = delete;
  TextBatches& operator=(const TextBatches&) = delete;

  void begin_pass(int64_t epoch);
  // Of this pass.
  int64_t samples() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t batches() const;  // of this worker
  double padding() const;   // its share of all tokens
  // Nothing: the pass is over.
  std::optional<Batch> next();

 protected:
  // Makes the samples of an epoch; gives their lengths.
  virtual std::vector<int32_t> prepare(int64_t epoch) = 0;
  virtual Batch make(const LengthBatch& batch) const = 0;
  // Of the samples of this epoch, for packs of `tokens`; capacities stay those of the first pass.
  virtual Demands demands(int64_t tokens) = 0;
  virtual Batch make_pack(const std::vector<int64_t>& samples) const = 0;
  int64_t epoch() const { return epoch_; }
  uint64_t seed() const { return options_.batches.seed; }
  int64_t multiple() const { return options_.batches.multiple; }

 private:
  TextBatchOptions options_;
  int64_t epoch_ = 0, done_ = 0;
  std::vector<int32_t> lengths_;
  std::vector<LengthBatch> list_;
  Demands demands_;  // of packs
};

// What is added to attention scores where there is only padding.
inline constexpr float kHiddenScore = -1e9f;

}  // namespace fleetx::data
