#include "fleetx/data/words.h"

#include <gtest/gtest.h>

#include <vector>

namespace fleetx::data {
namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text, CharOptions options = {}) {
  const Characters characters(options);
  Words out;
  for_each_word(text, characters, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

TEST(Words, AreSplitAtSpacesAndAroundPunctuation) {
  EXPECT_EQ(words_of(" Don't  stop,\tnow!\r\n"), (Words{"don", "'", "t", "stop", ",", "now", "!"}));
  // ASCII that Unicode calls symbols is punctuation, other symbols are not.
  EXPECT_EQ(words_of("a+b $5 ~x^ 5€ ©y"),
            (Words{"a", "+", "b", "$", "5", "~", "x", "^", "5€", "©y"}));
  EXPECT_EQ(words_of("¿qué? «x» — y…"), (Words{"¿", "que", "?", "«", "x", "»", "—", "y", "…"}));
  EXPECT_EQ(words_of(""), Words{});
  EXPECT_EQ(words_of(" \n "), Words{});
}

TEST(Words, LoseCaseAndAccents) {
  EXPECT_EQ(words_of("Zoë ÀÉÎ Łódź"), (Words{"zoe", "aei", "łodz"}));  // ł is no l with a mark
  EXPECT_EQ(words_of("Zoe\u0308"), Words{"zoe"});                      // a mark of its own
  EXPECT_EQ(words_of("STRAẞE Straße"), (Words{"straße", "straße"}));
  EXPECT_EQ(words_of("İstanbul"), Words{"istanbul"});
  EXPECT_EQ(words_of("ΟΔΟΣ"), Words{"οδοσ"});              // the last letter, too: no context
  EXPECT_EQ(words_of("\u212B"), Words{"a"});               // the sign of Ångström
  EXPECT_EQ(words_of("\u037E"), Words{";"});               // the Greek question mark is a semicolon
  EXPECT_EQ(words_of("한"), Words{"\u1112\u1161\u11AB"});  // Hangul in its letters
}

TEST(Words, KeepCaseAndAccentsIfAsked) {
  const CharOptions cased{.lowercase = false, .strip_accents = false};
  EXPECT_EQ(words_of("Zoë GO", cased), (Words{"Zoë", "GO"}));
  EXPECT_EQ(words_of("Zoë GO", {.lowercase = true, .strip_accents = false}), (Words{"zoë", "go"}));
  EXPECT_EQ(words_of("Zoë GO", {.lowercase = false, .strip_accents = true}), (Words{"Zoe", "GO"}));
  EXPECT_EQ(words_of("İ", {.lowercase = true, .strip_accents = false}), Words{"i\u0307"});
}

TEST(Words, AreSingleIdeographsInChinese) {
  EXPECT_EQ(words_of("深度学习ab"), (Words{"深", "度", "学", "习", "ab"}));
  EXPECT_EQ(words_of("\U0002B820x"), (Words{"\U0002B820", "x"}));
  EXPECT_EQ(words_of("カタ ひら"), (Words{"カタ", "ひら"}));
}

TEST(Words, LoseControlCharacters) {
  EXPECT_EQ(words_of(std::string_view("a\0b", 3)), Words{"ab"});
  EXPECT_EQ(words_of("a\u200Bb\uFFFDc\uFEFFd\x7f"), Words{"abcd"});
  EXPECT_EQ(words_of("a\x0b"
                     "b"),
            Words{"ab"});  // a vertical tab is a control character
  EXPECT_EQ(words_of("a\u00a0b\u3000c\u2028d"), (Words{"a", "b", "c", "d"}));
  EXPECT_EQ(words_of("a\uE000b"), Words{"ab"});        // private use
  EXPECT_EQ(words_of("a\u0378b"), Words{"a\u0378b"});  // not assigned
}

}  // namespace
}  // namespace fleetx::data
