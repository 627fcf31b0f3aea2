// For tests of recurrent ops: ragged batches, and activations by name.
#pragma once

#include <cmath>
#include <string>

#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {

inline float activated(const std::string& name, float x) {
  if (name == "sigmoid") return 1.0f / (1.0f + std::exp(-x));
  if (name == "tanh") return std::tanh(x);
  return name == "relu" ? std::max(x, 0.0f) : x;
}

// Sequences of 3, 0, 5, 1, 5 rows; a row between the first two and two at the end belong to none.
inline Tensor few_starts() { return Tensor::of<int64_t>({5}, {0, 4, 4, 9, 10}); }
inline Tensor few_lengths() { return Tensor::of<int64_t>({5}, {3, 0, 5, 1, 5}); }
constexpr int64_t kFewRows = 17;

// Many sequences of length `least` .. `least` + 19, one after the other.
struct Ragged {
  std::vector<int64_t> starts, lengths;
  int64_t rows = 0;
  Ragged(int64_t sequences, int64_t least) {
    for (int64_t b = 0; b < sequences; ++b) {
      starts.push_back(rows);
      lengths.push_back(least + b * 7 % 20);
      rows += lengths.back();
    }
  }
  OpInput input(const std::string& slot) const {
    const auto n = static_cast<int64_t>(starts.size());
    return {slot, Tensor::of<int64_t>({n}, slot == "starts" ? starts : lengths)};
  }
};

}  // namespace fleetx::testing
