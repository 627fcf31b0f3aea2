#include "fleetx/data/learn_merges.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

// The example of Sennrich et al. By hand: (e,s) and (s,t$) occur 9 times, and the text "s" is the
// greater one; then (e,st$) 9 times, (l,o) 7 times; then (n,e), (e,w) and (w,est$) 6 times.
TEST(LearnMerges, TakesTheMostFrequentPair) {
  const std::vector<CountedWord> words{{{"l", "o", "w$"}, 5},
                                       {{"l", "o", "w", "e", "r$"}, 2},
                                       {{"n", "e", "w", "e", "s", "t$"}, 6},
                                       {{"w", "i", "d", "e", "s", "t$"}, 3}};
  const Merges want{{"s", "t$"},     {"e", "st$"}, {"l", "o"}, {"w", "est$"}, {"n", "e"},
                    {"ne", "west$"}, {"lo", "w$"}, {"w", "i"}, {"wi", "d"}};
  EXPECT_EQ(learn_merges(words, {.merges = 9}), want);
  EXPECT_EQ(learn_merges(words, {.merges = 9, .min_count = 8}),
            (Merges{want.begin(), want.begin() + 2}));
  std::vector<CountedWord> reversed(words.rbegin(), words.rend());
  EXPECT_EQ(learn_merges(reversed, {.merges = 9}), want);
}

TEST(LearnMerges, DoesNotCountWhatOverlapsTwiceAfterwards) {
  // aaaa: three pairs, and two symbols aa remain.
  const std::vector<CountedWord> words{{{"a", "a", "a", "a"}, 2}};
  EXPECT_EQ(learn_merges(words, {.merges = 9}), (Merges{{"a", "a"}, {"aa", "aa"}}));
}

TEST(LearnMerges, EndsWhereNothingIsLeft) {
  EXPECT_EQ(learn_merges({}, {.merges = 5}), Merges{});
  EXPECT_EQ(learn_merges({{{"a", "b"}, 1}}, {.merges = 5}), Merges{});
  EXPECT_EQ(learn_merges({{{"a", "b"}, 1}}, {.merges = 5, .min_count = 1}), (Merges{{"a", "b"}}));
  testing::expect_error(Error::Kind::kInvalidArgument, {"min_count is 0"},
                        [] { learn_merges({}, {.merges = 1, .min_count = 0}); });
}

}  // namespace
}  // namespace fleetx::data
