// Which gradients are reduced together: few large calls are faster than many small ones, but a call
// can start only when its last gradient is there. So the first bucket is small, for the wire to
// begin early, and so is the last, which nothing is left to hide.
#pragma once

#include <string>
#include <vector>

#include "fleetx/base/dtype.h"

namespace fleetx::strategies {

struct Gradient {
  std::string name;
  std::string param;
  size_t bytes = 0;
  DType dtype = DType::kF32;
};

struct BucketLimits {
  size_t bytes = size_t{32} << 20;       // a bucket that has reached it is closed
  size_t first_bytes = size_t{1} << 20;  // the same for the first one
  size_t count = 50;                     // so is one that has more gradients than this
};

// Gradients in the order in which backward makes them, to buckets in that order. Those of one layer
// (the parameter's name up to its first dot) stay together; dtypes do not mix.
std::vector<std::vector<Gradient>> make_buckets(const std::vector<Gradient>& gradients,
                                                const BucketLimits& limits);

}  // namespace fleetx::strategies
