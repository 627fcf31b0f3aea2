#include "fleetx/data/binary_samples.h"

#include <gtest/gtest.h>

#include "fleetx/data/multi_slot.h"
#include "fleetx/data/sample_file.h"
#include "tests/data/some_samples.h"
#include "tests/support/expect_error.h"
#include "tests/support/memory_source.h"
#include "tests/support/temp_dir.h"

namespace fleetx::testing {
namespace {

using data::BinaryReader;
using data::BinaryWriter;
using data::Samples;
using data::Slot;

std::string write(const TempDir& folder, int64_t samples) {
  BinaryWriter writer(folder / "a.bin", kSomeSlots);
  const Samples all = some_samples(samples);
  for (int64_t at = 0; at < samples; at += 1000) {
    Samples part(kSomeSlots);
    part.append(all, at, std::min<int64_t>(1000, samples - at));
    writer.add(part);
  }
  EXPECT_EQ(writer.finish(), samples);
  return folder / "a.bin";
}

Samples read(const std::string& bytes, const std::vector<Slot>& slots = kSomeSlots,
             int64_t at_once = 512) {
  BinaryReader reader(std::make_unique<MemorySource>(bytes, 10007), "", "a.bin", slots);
  Samples samples(slots);
  while (reader.read(at_once, samples) > 0) {
  }
  EXPECT_EQ(reader.read(1, samples), 0);
  return samples;
}

TEST(BinarySamples, ComeBack) {
  const TempDir folder;
  for (const int64_t n : {0, 1, 63, 20000}) {  // 20,000: several blocks
    const std::string bytes = read_file(write(folder, n));
    EXPECT_EQ(lines_of(read(bytes)), lines_of(some_samples(n)));
  }
  EXPECT_EQ(lines_of(read(read_file(folder / "a.bin"), kSomeSlots, 7)),
            lines_of(some_samples(20000)));
}

TEST(BinarySamples, AreKnownByTheirFirstBytes) {
  const TempDir folder;
  const std::string path = write(folder, 3000);
  data::SampleFile file(path, {.format = data::multi_slot_format(kSomeSlots)});
  Samples samples(kSomeSlots);
  while (file.read(512, samples) > 0) {
  }
  EXPECT_EQ(lines_of(samples), lines_of(some_samples(3000)));
}

TEST(BinarySamples, SlotsAreFoundByName) {
  const TempDir folder;
  const std::string bytes = read_file(write(folder, 2));
  const std::vector<Slot> some{{"pair", DType::kI64, 2}, {"ids", DType::kI64, -1}};
  const Samples samples = read(bytes, some);
  EXPECT_EQ(lines_of(samples)[0], str("2 0 7 1 ", mix(3, 0) >> 0));
  const auto refused = [&](const Slot& slot, const std::string& part) {
    EXPECT_TRUE(contains(error_of([&] { read(bytes, {slot}); }), part));
  };
  refused({"labels", DType::kI64, 1}, "no slot 'labels'; it has ids, dense, words, pair, label");
  refused({"label", DType::kF32, 1}, "slot 'label' is i64, expected f32");
  refused({"pair", DType::kI64, 3}, "slot 'pair' has 2 values, expected 3");
  refused({"ids", DType::kI64, 1}, "slot 'ids' has any number of values, expected 1");
}

TEST(BinarySamples, EveryChangedByteAndEveryCutIsRefused) {
  const TempDir folder;
  const std::string bytes = read_file(write(folder, 5));
  const auto refuse = [](const std::string& damaged) {
    try {
      read(damaged);
    } catch (const Error& e) {
      // A changed name is a slot that is missing: that sum is looked at first, so not even this.
      EXPECT_EQ(e.kind(), Error::Kind::kCorrupt) << e.what();
      return;
    }
    ADD_FAILURE() << "read what is damaged";
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    refuse(damaged);
    refuse(bytes.substr(0, i));
  }
  refuse(bytes + "x");
}

}  // namespace
}  // namespace fleetx::testing
