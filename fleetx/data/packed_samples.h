// A block of samples as bytes: columns of numbers in as few bytes as the largest needs. The binary
// form of sample files consists of such blocks, and workers exchange samples in them.
//
//   per slot:    lengths of the samples (any width only), values
//   numbers:     u8 bytes per number (0, 1, 2, 4, 8), i64 base, then number - base of each
//   f32:         u8 4 and the bits; or u8 0 and, as base, the bits that all have
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/data/samples.h"

namespace fleetx::data {

inline constexpr int64_t kMaxPackedSamples = int64_t{1} << 20;
inline constexpr int64_t kMaxPackedValues = int64_t{1} << 26;  // of all slots, lengths included

std::string pack(const Samples& samples);

// A view of such bytes, which come from anywhere: whatever they are, they are read within their
// bounds or refused as kCorrupt.
class PackedSamples {
 public:
  PackedSamples() = default;
  PackedSamples(std::string_view bytes, int64_t samples, const std::vector<Slot>& slots,
                const std::string& name);

  int64_t count() const { return count_; }
  // Samples first to first + n. Column i of `to` is slot which[i] here, of the same type; where
  // that has a width, column i may have none.
  void read(int64_t first, int64_t n, std::span<const size_t> which, Samples& to) const;

 private:
  struct Numbers {
    const char* bytes = nullptr;
    int size = 0;  // of a number
    int64_t base = 0;
  };
  struct PackedColumn {
    DType dtype = DType::kI64;
    int64_t width = -1;
    Numbers values;
    std::vector<int64_t> ends;  // as those of Column
  };
  class Parser;
  static void unpack(const Numbers& from, int64_t first, int64_t n, int64_t* to);
  static void unpack(const Numbers& from, int64_t first, int64_t n, float* to);

  int64_t count_ = 0;
  std::vector<PackedColumn> columns_;
};

}  // namespace fleetx::data
