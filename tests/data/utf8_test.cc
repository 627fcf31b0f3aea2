#include "fleetx/data/utf8.h"

#include <gtest/gtest.h>

#include <vector>

namespace fleetx::data {
namespace {

constexpr size_t kFine = std::string_view::npos;

TEST(Utf8, KnowsWhatIsValid) {
  for (const char* text : {"", "plain", "Zo\xc3\xab", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "eight bytes and \xe2\x82\xac"})
    EXPECT_EQ(find_invalid_utf8(text), kFine) << text;
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(find_invalid_utf8("\x80"), 0u);              // goes on with nothing
  EXPECT_EQ(find_invalid_utf8("0123456789\xc3"), 10u);   // ends too early
  EXPECT_EQ(find_invalid_utf8("\xc0\xaf"), 0u);          // overlong
  EXPECT_EQ(find_invalid_utf8("\xe0\x9f\xbf"), 0u);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0u);      // a surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);  // above 10FFFF
  EXPECT_EQ(find_invalid_utf8("\xf0\x9f\x98"
                              "a"),
            0u);
}

// The example of section 3.9 of the Unicode standard ("maximal subparts").
TEST(Utf8, ReplacesEachBrokenSequenceOnce) {
  EXPECT_EQ(replace_invalid_utf8("a\xf1\x80\x80\xe1\x80\xc2"
                                 "b\x80"
                                 "c\x80\xbf"
                                 "d"),
            "a\uFFFD\uFFFD\uFFFD"
            "b\uFFFD"
            "c\uFFFD\uFFFD"
            "d");
  EXPECT_EQ(replace_invalid_utf8("Zoë"), "Zoë");
}

TEST(Utf8, ReadsWhatItWrites) {
  const std::vector<char32_t> points{0, 'a', 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff};
  std::string text;
  for (const char32_t c : points) append_utf8(text, c);
  EXPECT_EQ(find_invalid_utf8(text), kFine);
  EXPECT_EQ(count_code_points(text), points.size());
  const char* at = text.data();
  for (const char32_t c : points) EXPECT_EQ(next_code_point(at), c);
  EXPECT_EQ(at, text.data() + text.size());
}

}  // namespace
}  // namespace fleetx::data
