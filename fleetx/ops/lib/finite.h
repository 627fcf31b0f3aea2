// Whether numbers are finite.
#pragma once

#include <cstdint>

#include "fleetx/base/dtype.h"
#include "fleetx/base/simd.h"

namespace fleetx::ops {

// Exponents of all ones mark what is not finite; looking at bits is the same in every float mode.
template <class Bits>
bool all_finite(const Bits* x, int64_t n, Bits exponent) {
  bool bad = false;
  bool* result = &bad;
  vectorized([=] {
    Bits any = 0;
    for (int64_t i = 0; i < n; ++i) any |= static_cast<Bits>((x[i] & exponent) == exponent);
    *result = any != 0;
  });
  return !bad;
}

// Of 16 bits.
inline uint16_t exponent_of(DType half) { return half == bf16 ? 0x7f80u : 0x7c00u; }

}  // namespace fleetx::ops
