// 16-bit floats as storage types: they convert to and from float, arithmetic happens in float.
#pragma once

#include <bit>
#include <cstdint>

namespace fleetx {

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  BFloat16(float value) {  // NOLINT: implicit like the built-in conversions
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    // Round to nearest even; a NaN keeps its sign and stays a NaN.
    bits = nan ? static_cast<uint16_t>((u >> 16) | 0x40u)
               : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct Half {
  uint16_t bits = 0;

  Half() = default;
  Half(float value) {  // NOLINT: implicit like the built-in conversions
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      bits = sign | 0x7e00u;
    } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
      bits = sign | 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // subnormal: let the float adder do the rounding
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      bits = sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000u);
    } else {
      bits = sign | static_cast<uint16_t>(
                        (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13);
    }
  }
  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)
      return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x400u) {  // subnormal or zero
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return sign ? -value : value;
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  }
};

}  // namespace fleetx
