#include "fleetx/data/criteo.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "fleetx/data/formats.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using data::Samples;
using data::Slot;

std::vector<Slot> slots() {
  std::vector<Slot> out{{"dense", DType::kF32, 13}};
  for (int i = 1; i <= 26; ++i) out.push_back({"C" + std::to_string(i), DType::kI64, 1});
  out.push_back({"label", DType::kI64, 1});
  return out;
}

Samples parse_days(const std::string& text) {
  return parse_lines(text, *data::make_format("criteo", slots(), 1000), "day_0");
}

std::string line(const std::string& first_number, const std::string& first_word) {
  std::string out = "1\t" + first_number;
  for (int i = 1; i < 13; ++i) out += "\t" + (i % 2 == 0 ? "" : std::to_string(i));
  out += "\t" + first_word;
  for (int i = 1; i < 26; ++i) out += i % 5 == 0 ? "\t" : "\t68fd1e64";
  return out;
}

int64_t id(int place, const std::string& word) {
  const std::string text = std::to_string(place) + word;
  return static_cast<int64_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())) % 1000);
}

TEST(Criteo, NumbersAreScaledAndWordsHashed) {
  const Samples s = parse_days(line("5", "05db9164") + "\r\n" + line("", "") + "\n");
  ASSERT_EQ(s.count, 2);
  const float* dense = s.columns[0].values.data<float>();
  EXPECT_EQ(dense[0], 5.0f / 20);
  EXPECT_EQ(dense[1], (1.0f + 3) / 603);
  EXPECT_EQ(dense[2], 0.0f);
  EXPECT_EQ(dense[11], 11.0f / 10);
  EXPECT_EQ(dense[13], 0.0f);
  for (int place = 1; place <= 26; ++place) {
    const auto* ids = s.columns[static_cast<size_t>(place)].values.data<int64_t>();
    const std::string word = place == 1 ? "05db9164" : (place - 1) % 5 == 0 ? "" : "68fd1e64";
    EXPECT_EQ(ids[0], id(place, word)) << place;
    EXPECT_EQ(ids[1], id(place, place == 1 ? "" : word)) << place;
  }
  EXPECT_EQ(s.columns[27].values.data<int64_t>()[1], 1);
}

TEST(Criteo, DamagedLines) {
  const auto corrupt = [](const std::string& text, std::string_view part) {
    expect_error(Error::Kind::kCorrupt, {"day_0:1: sample '", part}, [&] { parse_days(text); });
  };
  corrupt("x\t1", "slot 'label': 'x' is not a label");
  corrupt("1 2", "is not a label");
  corrupt("1\t5\t6", "the line ends before field 4 of 40");
  corrupt(line("x", "a"), "slot 'dense': 'x' is not a number");
  corrupt(line("1", "a") + "\tb", "more than 40 fields");
  std::string short_line = line("1", "a");
  short_line.resize(short_line.rfind('\t'));
  corrupt(short_line, "the line ends before field 40 of 40");
}

TEST(Criteo, OtherSlotsAreRefused) {
  const auto refused = [](std::vector<Slot> given, int64_t ids, const std::string& part) {
    EXPECT_TRUE(contains(error_of([&] { criteo_format(given, ids); }), part));
  };
  refused({{"label", DType::kI64, 1}}, 10, "got 1, the first 'label' i64 of 1 values");
  refused(slots(), 0, "modulo 0");
  auto other = slots();
  other[3].width = 2;
  refused(other, 10, "slot 'C3' is i64 of 2 values");
  EXPECT_TRUE(contains(error_of([] { data::make_format("cryteo", slots(), 1); }),
                       "known: multi_slot, criteo, libsvm"));
}

}  // namespace
}  // namespace fleetx::testing
