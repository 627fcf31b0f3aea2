// The examples that infer functions see in the place of lengths that are known only when the op
// runs (see infer.h). For the few ops that must tell such a length from a known one.
#pragma once

#include "fleetx/ir/infer.h"

namespace fleetx::ir {

// Two highly composite numbers, so that an op which divides a dimension does not fail on the
// example.
inline constexpr int64_t kExampleA = 55440;
inline constexpr int64_t kExampleB = 2 * kExampleA;

// Of a length of an input's shape: is it known only when the op runs?
inline bool is_example(const Infer& c, int64_t length) {
  return c.by_example() && (length == kExampleA || length == kExampleB);
}

}  // namespace fleetx::ir
