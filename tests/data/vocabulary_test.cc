#include "fleetx/data/vocabulary.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using Kind = Error::Kind;

TEST(Vocabulary, NumbersTheLines) {
  const testing::TempDir folder;
  const Vocabulary v = Vocabulary::load(folder.write("vocab.txt", "[PAD]\r\n[UNK]\nZoë\n"));
  EXPECT_EQ(v.size(), 3);
  EXPECT_EQ(v.find("Zoë"), 2);
  EXPECT_EQ(v.find("zoë"), -1);
  EXPECT_EQ(v.token(0), "[PAD]");
  v.save(folder / "again.txt");
  EXPECT_EQ(Vocabulary::load(folder / "again.txt").tokens(), v.tokens());
  EXPECT_EQ(Vocabulary::parse("a", "x").size(), 1);  // no newline at the end
}

TEST(Vocabulary, NamesFileAndLineOfDamage) {
  expect_error(Kind::kCorrupt, {"v:2: the line is empty"},
               [] { Vocabulary::parse("a\n\nb\n", "v"); });
  expect_error(Kind::kCorrupt, {"v:3: 'a' is already in line 1"},
               [] { Vocabulary::parse("a\nb\na\n", "v"); });
  expect_error(Kind::kCorrupt, {"v:1: the token is not UTF-8"},
               [] { Vocabulary::parse("\xff\n", "v"); });
  expect_error(Kind::kCorrupt, {"v: has no tokens"}, [] { Vocabulary::parse("", "v"); });
  expect_error(Kind::kInvalidArgument, {"/no/vocab.txt"},
               [] { Vocabulary::load("/no/vocab.txt"); });
}

TEST(Vocabulary, NamesWhatItLacks) {
  const Vocabulary v = Vocabulary::parse("a\nb\n", "my/vocab.txt");
  EXPECT_EQ(v.at("b", "a test"), 1);
  expect_error(Kind::kInvalidArgument, {"my/vocab.txt: has no '[MASK]', which masking needs"},
               [&] { v.at("[MASK]", "masking"); });
  expect_error(Kind::kInvalidArgument, {"no token 2; there are 2"}, [&] { v.token(2); });
  expect_error(Kind::kInvalidArgument, {"no token -1"}, [&] { v.token(-1); });
}

}  // namespace
}  // namespace fleetx::data
