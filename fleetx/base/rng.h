// Counter-based random numbers (Philox4x32-10, Salmon et al., SC 2011): a value is a pure function
// of (seed, stream, index), so results do not depend on threads, workers or the order of
// evaluation.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace fleetx {

class Philox {
 public:
  // stream separates uses of one seed: typically hash(op name) mixed with the step.
  Philox(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  // Four independent 32-bit words for block `index`.
  std::array<uint32_t, 4> block(uint64_t index) const {
    std::array<uint32_t, 4> c{lo(index), hi(index), lo(stream_), hi(stream_)};
    uint32_t k0 = lo(seed_), k1 = hi(seed_);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
      c = {hi(p1) ^ c[1] ^ k0, lo(p1), hi(p0) ^ c[3] ^ k1, lo(p0)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return c;
  }

  // words[4 * i + w] = block(first + i)[w] for i < n. Inside vectorized() many blocks go at a time.
  void blocks(uint64_t first, int64_t n, uint32_t* words) const {
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t index = first + static_cast<uint64_t>(i);
      uint32_t a = lo(index), b = hi(index), c = lo(stream_), d = hi(stream_);
      uint32_t k0 = lo(seed_), k1 = hi(seed_);
#pragma GCC unroll 10  // a loop inside would keep this one from becoming vector code
      for (int round = 0; round < 10; ++round) {
        const uint64_t p0 = uint64_t{0xD2511F53u} * a, p1 = uint64_t{0xCD9E8D57u} * c;
        a = hi(p1) ^ b ^ k0, b = lo(p1), c = hi(p0) ^ d ^ k1, d = lo(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      words[4 * i] = a, words[4 * i + 1] = b, words[4 * i + 2] = c, words[4 * i + 3] = d;
    }
  }

  uint32_t bits(uint64_t index) const { return block(index / 4)[index % 4]; }
  float uniform(uint64_t index) const { return to_unit(bits(index)); }  // [0, 1)

  // Standard normal by Box-Muller; each index uses two words of its own.
  float normal(uint64_t index) const {
    const std::array<uint32_t, 4> b = block(index / 2);
    const uint32_t a = b[(index % 2) * 2], c = b[(index % 2) * 2 + 1];
    const double radius = std::sqrt(-2.0 * std::log((static_cast<double>(a) + 1.0) * 0x1p-32));
    return static_cast<float>(radius *
                              std::cos(6.283185307179586 * static_cast<double>(c) * 0x1p-32));
  }

  static float to_unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

 private:
  static uint32_t lo(uint64_t v) { return static_cast<uint32_t>(v); }
  static uint32_t hi(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

  uint64_t seed_, stream_;
};

// FNV-1a, the same in every process and on every machine (std::hash promises neither).
constexpr uint64_t stable_hash(std::string_view text, uint64_t basis = 0xcbf29ce484222325ull) {
  for (const char ch : text) basis = (basis ^ static_cast<unsigned char>(ch)) * 0x100000001b3ull;
  return basis;
}

// Mixes a counter into a stream id (the finaliser of SplitMix64).
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9e3779b97f4a7c15ull * (b + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace fleetx
