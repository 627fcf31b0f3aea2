// Samples in memory, in columns, with an order in which they are read. Shuffling makes a new order
// and leaves the samples where they are.
//
// Not thread-safe while it is changed. Readers take the order when they begin: a shuffle is for the
// next pass.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fleetx/data/samples.h"

namespace fleetx::data {

class SampleStore {
 public:
  explicit SampleStore(std::vector<Slot> slots);

  const std::vector<Slot>& slots() const { return slots_; }
  int64_t size() const { return size_; }
  size_t bytes() const;

  void append(const Samples& samples);
  // A random order: a function of seed, round and size.
  void shuffle(uint64_t seed, int64_t round);
  // Null: as they were appended.
  std::shared_ptr<const std::vector<int64_t>> order() const { return order_; }
  // Adds the samples with these numbers, which count from the first that was appended.
  void gather(std::span<const int64_t> numbers, Samples& to) const;

 private:
  // Blocks do not move when more is appended, and no more than one is partly empty.
  static constexpr int kBlockBits = 13;
  static constexpr int64_t kBlock = int64_t{1} << kBlockBits;
  template <class T>
  void gather_fixed(std::span<const int64_t> numbers, size_t column, Values& to) const;
  void gather_any(std::span<const int64_t> numbers, size_t column, Column& to) const;

  std::vector<Slot> slots_;
  std::vector<Samples> blocks_;  // full, but for the last
  int64_t size_ = 0;
  std::shared_ptr<const std::vector<int64_t>> order_;
};

}  // namespace fleetx::data
