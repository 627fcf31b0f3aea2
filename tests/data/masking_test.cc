#include "fleetx/data/masking.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/data/letters.h"
#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

using testing::expect_error;

TEST(Masking, RoundsTheNumberOfHiddenWords) {
  const Masking m(testing::letters(), 0.15);
  EXPECT_EQ(m.count(1), 1);
  EXPECT_EQ(m.count(9), 1);     // 1.35
  EXPECT_EQ(m.count(10), 2);    // 1.5
  EXPECT_EQ(m.count(125), 19);  // 18.75
}

// 20,000 rows of 20 words: 3 are hidden, 80 % [MASK], 10 % another word, 10 % the same. Bounds are
// four standard deviations.
TEST(Masking, HasTheSharesOfTheFormula) {
  const Masking m(testing::letters(), 0.15);
  std::map<int32_t, int> places;
  int masked = 0, kept = 0, other = 0;
  std::set<int64_t> words;
  const int rows = 20000;
  for (uint64_t r = 0; r < rows; ++r) {
    std::vector<int64_t> row(24, 7);
    row[0] = 2, row[12] = 3, row[22] = 3, row[23] = 0;
    const auto hidden = m.hide(row, Philox(1, r));
    ASSERT_EQ(hidden.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(hidden[i].word, 7);
      EXPECT_TRUE(i == 0 || hidden[i - 1].place < hidden[i].place);
      ++places[hidden[i].place];
      const int64_t now = row[static_cast<size_t>(hidden[i].place)];
      masked += now == 4, kept += now == 7, other += now != 4 && now != 7;
      if (now != 4) words.insert(now);
    }
    EXPECT_EQ(row[0], 2);
    EXPECT_EQ(row[12], 3);
    EXPECT_EQ(row[23], 0);
  }
  EXPECT_NEAR(masked, 48000, 400);
  EXPECT_NEAR(kept, 6000 + 6000 / 52, 320);  // one of the 52 words is the same by chance
  EXPECT_NEAR(other, 6000 - 6000 / 52, 320);
  EXPECT_EQ(words.size(), 52u);  // all but the special ones
  EXPECT_EQ(*words.begin(), 5);
  ASSERT_EQ(places.size(), 20u);
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 3000, 210) << place;
}

TEST(Masking, FollowsFromTheGeneratorAlone) {
  const Masking m(testing::letters(), 0.15);
  const auto rows = [&](uint64_t stream) {
    std::vector<int64_t> row(100, 7);
    m.hide(row, Philox(1, stream));
    return row;
  };
  EXPECT_EQ(rows(1), rows(1));
  EXPECT_NE(rows(1), rows(2));
}

TEST(Masking, NamesWhatIsMissing) {
  const auto kind = Error::Kind::kInvalidArgument;
  expect_error(kind, {"v: has no '[MASK]', which masking needs"},
               [] { Masking(Vocabulary::parse("[PAD]\n[CLS]\n[SEP]\na\n", "v"), 0.15); });
  expect_error(kind, {"v: has special tokens only"},
               [] { Masking(Vocabulary::parse("[PAD]\n[CLS]\n[SEP]\n[MASK]\n", "v"), 0.15); });
  expect_error(kind, {"is 1; must be in (0, 1)"}, [] { Masking(testing::letters(), 1); });
}

}  // namespace
}  // namespace fleetx::data
