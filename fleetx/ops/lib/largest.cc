#include "fleetx/ops/lib/largest.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "fleetx/base/rng.h"
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"

namespace fleetx::ops {
namespace {

constexpr int64_t kMostSamples = 4096, kLeastSamples = 128;
constexpr int64_t kChunk = 64, kGroup = 8;  // elements that are compared, and looked at, together
constexpr int64_t kGrain = 1 << 15;         // elements that are worth a thread
static_assert(kLargestScratch >= kMostSamples * sizeof(uint32_t));

struct Candidate {
  uint32_t place, bits;
};

// A magnitude that somewhat more than k elements reach, in all likelihood. One sample from each of
// many equal stretches, at a place that follows no pattern of x.
uint32_t lower_bound_of(const float* x, int64_t n, int64_t k, uint32_t* sample) {
  const int64_t m = std::min(n, std::clamp(n / 256, kLeastSamples, kMostSamples));
  const double expected = static_cast<double>(k) * static_cast<double>(m) / static_cast<double>(n);
  const auto rank = static_cast<int64_t>(expected + 3 * std::sqrt(expected) + 3);
  if (rank >= m) return 0;
  const int64_t stretch = n / m;
  for (int64_t i = 0; i < m; ++i) {
    const auto offset =
        static_cast<int64_t>(mix(static_cast<uint64_t>(i), 0) % static_cast<uint64_t>(stretch));
    sample[i] = Cut::magnitude(x[i * stretch + offset]);
  }
  std::nth_element(sample, sample + rank, sample + m, std::greater<>());
  return sample[rank];
}

// 16 at a time, all candidates of which are written by two stores.
__attribute__((target("avx512f"))) int64_t list_avx512(const float* x, int64_t begin, int64_t end,
                                                       uint32_t bound, Candidate* found,
                                                       int64_t room) {
  const __m512i low = _mm512_set1_epi32(static_cast<int>(bound));
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const __m512i first = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  int64_t count = 0;
  for (int64_t at = begin; at < end; at += 16) {
    if (count + 16 > room) return -1;
    const auto there = static_cast<__mmask16>(end - at >= 16 ? 0xffff : (1 << (end - at)) - 1);
    const __m512i bits = _mm512_and_si512(_mm512_maskz_loadu_epi32(there, x + at), magnitude);
    const __mmask16 reaches = _mm512_mask_cmpge_epu32_mask(there, bits, low);
    if (reaches == 0) continue;
    const __m512i places = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(at)), lanes);
    const __m512i p = _mm512_maskz_compress_epi32(reaches, places);
    const __m512i b = _mm512_maskz_compress_epi32(reaches, bits);
    _mm512_storeu_si512(found + count, _mm512_permutex2var_epi32(p, first, b));
    _mm512_storeu_si512(found + count + 8, _mm512_permutex2var_epi32(p, second, b));
    count += __builtin_popcount(reaches);
  }
  return count;
}

// Those in [begin, end) that reach the bound; -1: there are more than there is room for.
int64_t list_part(const float* x, int64_t begin, int64_t end, uint32_t bound, Candidate* found,
                  int64_t room) {
  if (vector_isa() >= cpu::Isa::kAvx512) return list_avx512(x, begin, end, bound, found, room);
  int64_t result = 0;
  vectorized([=, out = &result] {
    int64_t count = 0;
    const auto look = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const uint32_t bits = Cut::magnitude(x[i]);
        found[count] = {static_cast<uint32_t>(i), bits};  // stays only if it counts
        count += bits >= bound ? 1 : 0;
      }
    };
    int64_t at = begin;
    for (; at + kChunk <= end && count + kChunk < room; at += kChunk) {
      alignas(kChunk) uint8_t reaches[kChunk];
      for (int64_t i = 0; i < kChunk; ++i) reaches[i] = Cut::magnitude(x[at + i]) >= bound ? 1 : 0;
      for (int64_t g = 0; g < kChunk; g += kGroup) {
        uint64_t any;
        std::memcpy(&any, reaches + g, sizeof any);
        if (any != 0) look(at + g, at + g + kGroup);
      }
    }
    for (; at < end && count + 1 < room; ++at) look(at, at + 1);
    *out = at == end ? count : -1;
  });
  return result;
}

// In the order of their places, whatever the number of threads; -1: more than n / 2 - some.
int64_t list(const float* x, int64_t n, uint32_t bound, Candidate* found) {
  constexpr int kMostParts = 256;
  const int parts = std::min(parts_for(n, kGrain), kMostParts);
  std::array<int64_t, kMostParts> counts, begins;
  parallel_parts(n, parts, [&](int part, int64_t begin, int64_t end) {
    const auto p = static_cast<size_t>(part);
    begins[p] = (begin + 1) / 2;
    counts[p] = list_part(x, begin, end, bound, found + begins[p], end / 2 - begins[p]);
  });
  int64_t count = 0;
  for (size_t p = 0; p < static_cast<size_t>(parts); ++p) {
    if (counts[p] < 0) return -1;
    std::memmove(found + count, found + begins[p],
                 static_cast<size_t>(counts[p]) * sizeof(Candidate));
    count += counts[p];
  }
  return count;
}

// The k-th largest of the magnitudes bits_of(0), ..., by its digits from the highest: 11, 10 and 10
// bits. `k` becomes the number of elements of just that magnitude that belong to the k largest.
template <class Bits>
uint32_t kth_largest(int64_t count, const Bits& bits_of, int64_t& k, uint32_t* histogram) {
  uint32_t known = 0;  // digits found so far
  for (const auto& [shift, width] : {std::pair{20, 11}, {10, 10}, {0, 10}}) {
    const uint32_t mask = (1u << width) - 1;
    const int above = shift + width;
    std::fill_n(histogram, mask + 1, 0u);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t bits = bits_of(i);
      if ((static_cast<uint64_t>(bits) >> above) == (static_cast<uint64_t>(known) >> above))
        ++histogram[(bits >> shift) & mask];
    }
    uint32_t digit = mask;
    while (static_cast<int64_t>(histogram[digit]) < k) k -= histogram[digit--];
    known |= digit << shift;
  }
  return known;
}

// The places of those above the magnitude, and of the first `ties` that have it.
template <class Bits, class Place>
Cut take(int64_t count, const Bits& bits_of, const Place& place_of, uint32_t magnitude,
         int64_t ties, int64_t k, uint32_t* places) {
  Cut cut{.bits = magnitude};
  int64_t taken = 0;
  for (int64_t i = 0; i < count && taken < k; ++i) {
    const uint32_t bits = bits_of(i), place = place_of(i);
    const bool tie = bits == magnitude && ties > 0;
    cut.place = tie ? place : cut.place;
    ties -= tie ? 1 : 0;
    places[taken] = place;
    taken += bits > magnitude || tie ? 1 : 0;
  }
  return cut;
}

}  // namespace

Cut find_largest(const float* x, int64_t n, int64_t k, uint32_t* places, uint32_t* scratch) {
  // Zeros are never candidates: a gradient may have nothing else.
  const uint32_t bound = std::max(1u, lower_bound_of(x, n, k, scratch));
  auto* found = reinterpret_cast<Candidate*>(places);
  const int64_t count = list(x, n, bound, found);
  if (count >= k) {
    const auto bits_of = [=](int64_t i) { return found[i].bits; };
    int64_t ties = k;
    const uint32_t magnitude = kth_largest(count, bits_of, ties, scratch);
    return take(
        count, bits_of, [=](int64_t i) { return found[i].place; }, magnitude, ties, k, places);
  }
  // Too many for the room, or an unlikely sample: among all of them.
  const auto bits_of = [=](int64_t i) { return Cut::magnitude(x[i]); };
  int64_t ties = k;
  uint32_t magnitude = 0;
  if (count >= 0 && bound == 1)
    ties = k - count;  // all that is not zero, and some zeros
  else
    magnitude = kth_largest(n, bits_of, ties, scratch);
  return take(
      n, bits_of, [](int64_t i) { return static_cast<uint32_t>(i); }, magnitude, ties, k, places);
}

}  // namespace fleetx::ops
