#include "fleetx/ops/lib/largest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetx/base/threads.h"
#include "tests/support/op_case.h"

namespace fleetx::ops {
namespace {

std::vector<uint32_t> find(const std::vector<float>& x, int64_t k, Cut* cut = nullptr) {
  std::vector<uint32_t> places(x.size()), scratch(kLargestScratch / sizeof(uint32_t));
  const Cut found = find_largest(x.data(), std::ssize(x), k, places.data(), scratch.data());
  if (cut != nullptr) *cut = found;
  places.resize(static_cast<size_t>(k));
  return places;
}

// By sorting all of them.
std::vector<uint32_t> expected(const std::vector<float>& x, int64_t k) {
  std::vector<uint32_t> places(x.size());
  std::iota(places.begin(), places.end(), 0u);
  std::stable_sort(places.begin(), places.end(), [&](uint32_t a, uint32_t b) {
    return Cut::magnitude(x[a]) > Cut::magnitude(x[b]);
  });
  places.resize(static_cast<size_t>(k));
  std::sort(places.begin(), places.end());
  return places;
}

std::vector<float> values(int64_t n, const std::function<float(int64_t, float)>& fn) {
  const Tensor random = testing::random({n}, 5);
  std::vector<float> x(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    x[static_cast<size_t>(i)] = fn(i, random.data<float>()[static_cast<size_t>(i)]);
  return x;
}

TEST(Largest, AreThoseOfSorting) {
  const std::vector<std::pair<const char*, std::function<float(int64_t, float)>>> kinds{
      {"uniform", [](int64_t, float r) { return r; }},
      {"heavy_tail", [](int64_t, float r) { return r / (1.0001f - std::abs(r)); }},
      {"equal", [](int64_t i, float) { return i % 2 == 0 ? 2.0f : -2.0f; }},
      {"zero", [](int64_t, float) { return 0.0f; }},
      {"few", [](int64_t i, float r) { return i % 1000 == 7 ? r : 0.0f; }},
      {"columns", [](int64_t i, float r) { return i % 64 == 0 ? 10 * r : 0.01f * r; }},
      {"one_place", [](int64_t i, float r) { return i < 500 ? 100 * r : 0.01f * r; }},
      {"few_values", [](int64_t, float r) { return std::round(r * 4); }},
      {"not_finite", [](int64_t i, float r) {
         return i % 97 == 0 ? NAN : i % 89 == 0 ? -INFINITY : r;
       }}};
  for (const auto& [kind, fn] : kinds)
    for (const int64_t n : {1, 63, 64, 1000, 16384, 200'001}) {
      const std::vector<float> x = values(n, fn);
      for (const double share : {0.0, 0.001, 0.016, 0.25, 0.9, 1.0}) {
        const int64_t k =
            std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(n)), 1, n);
        Cut cut;
        const auto got = find(x, k, &cut);
        ASSERT_EQ(got, expected(x, k)) << kind << ", " << k << " of " << n;
        int64_t taken = 0;
        for (int64_t i = 0; i < n; ++i)
          taken += cut.takes(x[static_cast<size_t>(i)], static_cast<uint32_t>(i)) ? 1 : 0;
        ASSERT_EQ(taken, k) << kind << ", " << k << " of " << n;
      }
    }
}

TEST(Largest, AreTheSameForAnyNumberOfThreads) {
  const int before = num_threads();
  const std::vector<float> x =
      values(1 << 20, [](int64_t, float r) { return std::round(r * 1e4f); });
  const auto with_all = find(x, 10'000);
  set_num_threads(1);
  const auto with_one = find(x, 10'000);
  set_num_threads(before);
  EXPECT_EQ(with_one, with_all);
}

}  // namespace
}  // namespace fleetx::ops
