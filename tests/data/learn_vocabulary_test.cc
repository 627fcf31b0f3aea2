#include "fleetx/data/learn_vocabulary.h"

#include <gtest/gtest.h>

#include "fleetx/data/wordpiece.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using testing::TempDir;
using Kind = Error::Kind;

TEST(CountWords, CountsByEitherRule) {
  const TempDir folder;
  const std::string file = folder.write("t", "Go, go!\ngo\r\n");
  EXPECT_EQ(count_words({file, file}, {}), (WordCounts{{"!", 2}, {",", 2}, {"go", 6}}));
  EXPECT_EQ(count_words({file}, {.rule = WordRule::kSpaces}),
            (WordCounts{{"Go,", 1}, {"go", 1}, {"go!", 1}}));
}

TEST(CountWords, ATabIsASpaceInPairs) {
  const TempDir folder;
  const std::string file = folder.write("t", "a cat\teine Katze\n");
  EXPECT_EQ(count_words({file}, {.rule = WordRule::kTabs}),
            (WordCounts{{"Katze", 1}, {"a", 1}, {"cat", 1}, {"eine", 1}}));
  EXPECT_EQ(count_words({file}, {.rule = WordRule::kSpaces}),
            (WordCounts{{"Katze", 1}, {"a", 1}, {"cat\teine", 1}}));
}

TEST(CountWords, NamesWhatIsWrong) {
  const TempDir folder;
  const std::string bad = folder.write("bad", "fine\nno \xff\n"),
                    empty = folder.write("empty", "\n");
  expect_error(Kind::kCorrupt, {"bad:2: byte 4 is not UTF-8"}, [&] { count_words({bad}, {}); });
  EXPECT_EQ(count_words({bad}, {.policy = BadText::kSkip}), (WordCounts{{"fine", 1}}));
  expect_error(Kind::kCorrupt, {"empty: no words to learn from"},
               [&] { count_words({empty}, {}); });
}

TEST(LearnWordPiece, HasSpecialTokensCharactersAndMerges) {
  const WordCounts words{{"low", 5}, {"lower", 2}, {"q", 1}};
  // By hand: characters l o w e r q; merges of (l,##o) 7 and (##o,##w) 7: the greater text is "l".
  const Vocabulary v = learn_wordpiece(words, {.size = 15, .alphabet = 5});
  EXPECT_EQ(v.tokens(),
            (std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "l", "##e",
                                      "##o", "##r", "##w", "lo", "low", "lowe", "lower"}));
  const WordPiece tokenizer(v);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("Lower low")), "lower low");
  EXPECT_EQ(tokenizer.encode("lower").size(), 1u);
  EXPECT_EQ(tokenizer.encode("q")[0], 1);  // the sixth character
  expect_error(Kind::kInvalidArgument, {"has no room for 11"},
               [&] { learn_wordpiece(words, {.size = 8}); });
}

TEST(LearnBpe, GivesCodesAndTheirVocabulary) {
  const WordCounts words{{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
  const BpeCodes codes = learn_bpe(words, 4);
  EXPECT_EQ(codes.text(), "#version: 0.2\ns t</w>\ne st</w>\nl o\nw est</w>\n");
  EXPECT_EQ(bpe_vocabulary_text({{"low", 5}, {"lower", 2}, {"west", 6}}, codes),
            "lo@@ 7\nwest 6\nw 5\ne@@ 2\nr 2\nw@@ 2\n");
  expect_error(Kind::kInvalidArgument, {"merges is 0"}, [&] { learn_bpe(words, 0); });
  expect_error(Kind::kInvalidArgument, {"met 2 times", "nothing to merge"}, [] {
    learn_bpe({{"a", 9}, {"ab", 1}}, 4);
  });
}

}  // namespace
}  // namespace fleetx::data
