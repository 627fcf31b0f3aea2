#include "fleetx/data/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using Kind = Error::Kind;

const char* const kCodes = "#version: 0.2\ns t</w>\ne st</w>\nl o\nlo w\nlow est</w>\n";

TEST(Bpe, MergesInTheOrderOfTheCodes) {
  const Bpe bpe(BpeCodes::parse(kCodes, "c"), {});
  EXPECT_EQ(bpe.segment("lowest low  slow est"), "lowest lo@@ w s@@ lo@@ w est");
  EXPECT_EQ(bpe.segment("löwen"), "l@@ ö@@ w@@ e@@ n");
  EXPECT_EQ(bpe.segment(""), "");
  EXPECT_EQ(bpe.segment("x"), "x");
}

// Version 0.1: the end of a word is a symbol of its own, so that "w </w>" is a merge.
TEST(Bpe, ReadsOldCodes) {
  const Bpe bpe(BpeCodes::parse("l o\nlo w\nlow </w>\n", "c"), {});
  EXPECT_EQ(bpe.segment("low lows"), "low low@@ s");
}

TEST(Bpe, SplitsWhatTheVocabularyLacks) {
  const Vocabulary v =
      parse_bpe_vocabulary("low@@ 5\nest 4\nlo@@ 2\nw 2\nlowest 1\nl@@ 9\no@@ 9\n", "v", 2);
  const Bpe bpe(BpeCodes::parse(kCodes, "c"), v);
  EXPECT_EQ(bpe.segment("lowest"), "low@@ est");  // occurs less than twice
  const std::vector<int32_t> want{v.find("low@@"), v.find("est"), v.find("<unk>"), v.find("lo@@"),
                                  v.find("w")};
  EXPECT_EQ(bpe.encode("lowest x low"), want);
  EXPECT_EQ(bpe.decode({v.find("low@@"), v.find("est"), v.find("w")}), "lowest w");
}

TEST(Bpe, CutsEndlessWords) {
  const Bpe bpe(BpeCodes::parse("l o\n", "c"), {});
  std::string word;
  for (int i = 0; i < 3000; ++i) word += "ö";  // 6,000 bytes
  const std::string out = bpe.segment(word);
  EXPECT_EQ(std::ranges::count(out, ' '), 2999);
}

TEST(BpeCodes, AreWrittenAsTheyAreRead) {
  EXPECT_EQ(BpeCodes::parse(kCodes, "c").text(), kCodes);
  EXPECT_EQ(BpeCodes::parse("#version: 0.1\na b\n", "c").text(), "#version: 0.1\na b\n");
}

TEST(BpeCodes, NameFileAndLineOfDamage) {
  expect_error(Kind::kCorrupt, {"c:2: 'a' is not two symbols"},
               [] { BpeCodes::parse("a b\na\n", "c"); });
  expect_error(Kind::kCorrupt, {"c:1: 'a b c'"}, [] { BpeCodes::parse("a b c\n", "c"); });
  expect_error(Kind::kCorrupt, {"c:2: the line is not UTF-8"},
               [] { BpeCodes::parse("a b\n\xff b\n", "c"); });
  expect_error(Kind::kCorrupt, {"c:1: version '0.3'"},
               [] { BpeCodes::parse("#version: 0.3\na b\n", "c"); });
  expect_error(Kind::kCorrupt, {"c:1: version ''"},
               [] { BpeCodes::parse("#version:\na b\n", "c"); });
  expect_error(Kind::kCorrupt, {"c: has no merges"}, [] { BpeCodes::parse("", "c"); });
}

TEST(BpeVocabulary, HasSpecialTokensFirst) {
  EXPECT_EQ(parse_bpe_vocabulary("a 3\nb\n", "v").tokens(),
            (std::vector<std::string>{"<s>", "<e>", "<unk>", "a", "b"}));
  EXPECT_EQ(parse_bpe_vocabulary("<s>\n<e>\n<unk>\na\n", "v").tokens(),
            (std::vector<std::string>{"<s>", "<e>", "<unk>", "a"}));
  expect_error(Kind::kCorrupt, {"v:2: 'x' is not how often 'b' occurs"},
               [] { parse_bpe_vocabulary("a 1\nb x\n", "v"); });
  expect_error(Kind::kCorrupt, {"v:1: the line begins with no token"},
               [] { parse_bpe_vocabulary("\n", "v"); });
  expect_error(Kind::kCorrupt, {"v: has no tokens"}, [] { parse_bpe_vocabulary("", "v"); });
  expect_error(Kind::kInvalidArgument, {"has no '<unk>'"},
               [] { Bpe(BpeCodes::parse(kCodes, "c"), Vocabulary::parse("a\n", "v")); });
  expect_error(Kind::kInvalidArgument, {"use segment()"},
               [] { Bpe(BpeCodes::parse(kCodes, "c"), {}).encode("a"); });
}

}  // namespace
}  // namespace fleetx::data
