#include "fleetx/data/text_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/memory_source.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using Kind = Error::Kind;
using Lines = std::vector<std::string>;

TextLines lines_of(std::string_view text, BadText policy = BadText::kStop, size_t at_once = 3) {
  return {std::make_unique<testing::MemorySource>(text, at_once), "t", policy};
}

Lines all(TextLines lines) {
  Lines out;
  while (lines.next()) out.emplace_back(lines.line());
  return out;
}

TEST(TextLines, AreWithoutTheirEnds) {
  EXPECT_EQ(all(lines_of("a\r\n\nlong line\nlast")), (Lines{"a", "", "long line", "last"}));
  EXPECT_EQ(all(lines_of("\xef\xbb\xbf"
                         "a\n")),
            Lines{"a"});
  EXPECT_EQ(all(lines_of("")), Lines{});
  EXPECT_EQ(all(lines_of("\n")), Lines{""});
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(all(lines_of(large + "\ny", BadText::kStop, 1 << 16)), (Lines{large, "y"}));
}

TEST(TextLines, FollowThePolicyForBytesThatAreNotUtf8) {
  const char* const text = "a\nb\xff\nc\n";
  expect_error(Kind::kCorrupt, {"t:2: byte 2 is not UTF-8", "bad_lines=skip or bad_lines=replace"},
               [&] { all(lines_of(text)); });
  EXPECT_EQ(all(lines_of(text, BadText::kSkip)), (Lines{"a", "c"}));
  EXPECT_EQ(all(lines_of(text, BadText::kReplace)), (Lines{"a", "b\uFFFD", "c"}));
  TextLines lines = lines_of(text, BadText::kSkip);
  while (lines.next()) {
  }
  EXPECT_EQ(lines.bad(), 1);
  EXPECT_EQ(lines.number(), 3);
}

TEST(TextLines, KnowTheWordsOfAPolicy) {
  EXPECT_EQ(bad_text_of("replace", "bad_lines"), BadText::kReplace);
  expect_error(Kind::kInvalidArgument, {"bad_lines is 'ignore'; known: stop, skip, replace"},
               [] { bad_text_of("ignore", "bad_lines"); });
}

}  // namespace
}  // namespace fleetx::data
