#include "fleetx/data/wordpiece.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

using Tokens = std::vector<std::string>;

// Of the paper's example, and some more.
const char* const kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n##a\nwant\n##ed\nwanted\nrunning\n,\n#"
    "\n"
    "深\nzoe\n##e\n[\n]\nmask\nu\n";

Tokens tokens_of(std::string_view text, CharOptions options = {}) {
  const WordPiece tokenizer(Vocabulary::parse(kVocabulary, "vocab.txt"), options);
  Tokens out;
  for (const int32_t id : tokenizer.encode(text)) out.push_back(tokenizer.vocabulary().token(id));
  return out;
}

TEST(WordPiece, TakesTheLongestPieces) {
  EXPECT_EQ(tokens_of("Want, running"), (Tokens{"want", ",", "running"}));
  EXPECT_EQ(tokens_of("unaffable"), (Tokens{"un", "##aff", "##able"}));
  EXPECT_EQ(tokens_of("wanted"), Tokens{"wanted"});  // not want ##ed
  EXPECT_EQ(tokens_of("Zoë 深深#"), (Tokens{"zoe", "深", "深", "#"}));
}

TEST(WordPiece, GivesUpAWordAsAWhole) {
  EXPECT_EQ(tokens_of("unwanted"), Tokens{"[UNK]"});  // no ##wanted
  EXPECT_EQ(tokens_of("unaffx un"), (Tokens{"[UNK]", "un"}));
  EXPECT_EQ(tokens_of("x"), Tokens{"[UNK]"});
  // Greedy: un leaves ##affabl, and does not go back to u.
  EXPECT_EQ(tokens_of("unaffabl"), Tokens{"[UNK]"});
  EXPECT_EQ(tokens_of("Zoë", {.lowercase = false, .strip_accents = false}), Tokens{"[UNK]"});
}

TEST(WordPiece, GivesUpWordsOfMoreThanAHundredCharacters) {
  const std::string hundred = "u" + std::string("n") + std::string(98, 'a');
  EXPECT_EQ(tokens_of(hundred).size(), 99u);  // un, and 98 times ##a
  EXPECT_EQ(tokens_of(hundred + "a"), Tokens{"[UNK]"});
  std::string accents = "un";  // 98 times ä: 198 bytes of text, 100 characters of the word
  for (int i = 0; i < 98; ++i) accents += "ä";
  EXPECT_EQ(tokens_of(accents).size(), 99u);
}

TEST(WordPiece, SeesNoSpecialTokensInText) {
  EXPECT_EQ(tokens_of("[MASK]"), (Tokens{"[", "mask", "]"}));
}

TEST(WordPiece, DecodesWhatItEncoded) {
  const WordPiece tokenizer(Vocabulary::parse(kVocabulary, "v"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("Unaffable, wanted")), "unaffable , wanted");
}

TEST(WordPiece, NamesWhatIsWrong) {
  testing::expect_error(Error::Kind::kInvalidArgument, {"v: has no '[UNK]'"},
                        [] { WordPiece w(Vocabulary::parse("a\n", "v")); });
  testing::expect_error(Error::Kind::kInvalidArgument, {"not UTF-8 at byte 3 of 4"},
                        [] { tokens_of("un \xff"); });
}

TEST(WordPiece, IsTheSameForAllThreads) {
  const WordPiece tokenizer(Vocabulary::parse(kVocabulary, "v"));
  const std::string text = "unaffable Zoë 深, ΑΒΓ д ไทย";
  std::vector<std::vector<int32_t>> got(4);
  std::vector<std::thread> threads;
  for (auto& to : got) threads.emplace_back([&] { tokenizer.encode(text, to); });
  for (std::thread& t : threads) t.join();
  for (const auto& tokens : got) EXPECT_EQ(tokens, tokenizer.encode(text));
}

}  // namespace
}  // namespace fleetx::data
