#include "fleetx/data/packed_samples.h"

#include <gtest/gtest.h>

#include "tests/data/some_samples.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using data::PackedSamples;
using data::Samples;
using data::Slot;

const std::vector<size_t> kAll{0, 1, 2, 3, 4};

TEST(PackedSamples, AllPartsComeBack) {
  const Samples samples = some_samples(100);
  const std::string bytes = pack(samples);
  const PackedSamples packed(bytes, 100, kSomeSlots, "test");
  EXPECT_EQ(packed.count(), 100);
  Samples whole(kSomeSlots), parts(kSomeSlots);
  packed.read(0, 100, kAll, whole);
  for (int64_t at = 0; at < 100; at += 9)
    packed.read(at, std::min<int64_t>(9, 100 - at), kAll, parts);
  EXPECT_EQ(lines_of(whole), lines_of(samples));
  EXPECT_EQ(lines_of(parts), lines_of(samples));
}

TEST(PackedSamples, NumbersOfAllSizes) {
  const std::vector<Slot> slots{{"x", DType::kI64, 1}};
  for (const int64_t most :
       {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{65536}, int64_t{1} << 32, INT64_MAX}) {
    for (const int64_t base : {int64_t{0}, int64_t{-5}, INT64_MIN}) {
      if (base == 0 || most < INT64_MAX) {
        Samples samples(slots);
        for (const int64_t x : {base, base + most, base + most / 2}) {
          put<int64_t>(samples.columns[0], {x});
          ++samples.count;
        }
        const std::string bytes = pack(samples);
        Samples back(slots);
        PackedSamples(bytes, 3, slots, "test").read(0, 3, std::vector<size_t>{0}, back);
        EXPECT_EQ(lines_of(back), lines_of(samples)) << most << " " << base;
        EXPECT_EQ(bytes.size(), 9 + 3 * (most == 0           ? 0u
                                         : most <= 255       ? 1u
                                         : most <= 65535     ? 2u
                                         : most <= 1ll << 31 ? 4u
                                                             : 8u));
      }
    }
  }
}

TEST(PackedSamples, SomeSlotsInAnotherOrder) {
  const std::string bytes = pack(some_samples(10));
  const PackedSamples packed(bytes, 10, kSomeSlots, "test");
  // `pair` has a width in the block and none here.
  const std::vector<Slot> some{{"label", DType::kI64, 1}, {"pair", DType::kI64, -1}};
  Samples samples(some);
  packed.read(4, 2, std::vector<size_t>{4, 3}, samples);
  EXPECT_EQ(lines_of(samples), (std::vector<std::string>{"1 1 2 4 7", "1 1 2 5 7"}));
}

TEST(PackedSamples, DamageIsRefused) {
  const std::string bytes = pack(some_samples(10));
  const auto refuse = [](const std::string& damaged, int64_t samples,
                         std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kCorrupt, parts,
                 [&] { PackedSamples(damaged, samples, kSomeSlots, "file"); });
  };
  for (size_t n = 0; n < bytes.size(); ++n) refuse(bytes.substr(0, n), 10, {"file: damaged"});
  refuse(bytes + "x", 10, {"1 bytes too many"});
  refuse(bytes, 0, {"a block of 0 samples"});
  refuse(bytes, -1, {"a block of -1 samples"});
  refuse(bytes, int64_t{1} << 40, {"a block of"});
  std::string other = bytes;
  other[0] = 3;
  refuse(other, 10, {"slot 'ids' has numbers of 3 bytes"});
  other = bytes;
  other[1] = '\0';  // the shortest length
  refuse(other, 10, {"slot 'ids' has a sample of 0 values"});
  other = bytes;
  other[8] = '\x7f';  // its highest byte
  refuse(other, 10, {"slot 'ids' has a sample of"});
}

// Nine bytes that say "a million times 2^24 values".
TEST(PackedSamples, FewBytesDoNotBecomeMany) {
  const std::vector<Slot> wide{{"x", DType::kI64, int64_t{1} << 24}};
  expect_error(Error::Kind::kCorrupt, {"too many values"},
               [&] { PackedSamples(std::string(9, '\0'), 1 << 20, wide, "file"); });
}

}  // namespace
}  // namespace fleetx::testing
