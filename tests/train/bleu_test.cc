#include "fleetx/train/bleu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/support/expect_error.h"

namespace fleetx::train {
namespace {

using testing::expect_error;

std::vector<Sentence> words(std::initializer_list<const char*> lines) {
  std::vector<Sentence> out;
  for (const char* line : lines) {
    std::istringstream in(line);
    out.emplace_back(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>());
  }
  return out;
}

TEST(Bleu, TheSameTextHas100) {
  const auto text = words({"a cat sat on the mat", "no"});
  EXPECT_DOUBLE_EQ(bleu(text, text).score, 100);
}

TEST(Bleu, CountsRunsOnceAndPunishesShortOnes) {
  // Of the 7 words 2 are found: "the" is only twice in the reference (the example of the paper).
  const Bleu clipped =
      bleu(words({"the the the the the the the"}), words({"the cat is on the mat"}));
  EXPECT_DOUBLE_EQ(clipped.precisions[0], 2.0 / 7);
  EXPECT_EQ(clipped.score, 0);
  const Bleu shorter = bleu(words({"a b c d e"}), words({"a b c d e f g h i j"}));
  EXPECT_DOUBLE_EQ(shorter.brevity, std::exp(-1.0));
  EXPECT_NEAR(shorter.score, 100 * std::exp(-1.0), 1e-9);
  // By hand: 5/6, 3/5, 2/4 and 1/3 of the runs.
  const Bleu one_off = bleu(words({"a b c d x f"}), words({"a b c d e f"}));
  EXPECT_NEAR(one_off.score, 100 * std::pow(5.0 / 6 * 3 / 5 * 2 / 4 * 1 / 3, 0.25), 1e-9);
}

TEST(Bleu, IsOfTheWholeCorpus) {
  const Bleu two = bleu(words({"a b c d", "x y z w"}), words({"a b c d", "a b c d"}));
  EXPECT_NEAR(two.score, 50, 1e-9);
}

TEST(Bleu, ListsMustFit) {
  expect_error(Error::Kind::kInvalidArgument, {"1 translations and 2 references"}, [] {
    bleu(words({"a"}), words({"a", "b"}));
  });
  expect_error(Error::Kind::kInvalidArgument, {"at least one"}, [] { bleu({}, {}); });
}

}  // namespace
}  // namespace fleetx::train
