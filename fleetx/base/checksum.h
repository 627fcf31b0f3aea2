// A checksum of blocks of bytes that is as fast as memory; a changed or exchanged word changes it.
// Against accidents, not against people.
#pragma once

#include <cstring>
#include <string_view>

#include "fleetx/base/rng.h"

namespace fleetx {

inline uint64_t word_checksum(std::string_view bytes) {
  uint64_t lane[4] = {1, 2, 3, 4};  // four chains, so that multiplications overlap
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32)
    for (size_t k = 0; k < 4; ++k) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at + 8 * k, 8);
      lane[k] = (lane[k] ^ word) * 0x9e3779b97f4a7c15ull;
      lane[k] ^= lane[k] >> 29;
    }
  uint64_t sum = stable_hash(bytes.substr(at), bytes.size());
  for (const uint64_t l : lane) sum = mix(sum, l);
  return sum;
}

}  // namespace fleetx
