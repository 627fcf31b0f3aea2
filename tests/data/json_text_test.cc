#include "fleetx/data/json_text.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

using Sentences = std::vector<std::string>;

TEST(JsonText, HasSentences) {
  EXPECT_EQ(sentences_of_json(R"({"id": 1, "text": "One.\n\nTwo \u00eb."})", "text"),
            (Sentences{"One.", "Two ë."}));
  EXPECT_EQ(sentences_of_json(R"({"body": ["a", "b\nc", ""]})", "body"),
            (Sentences{"a", "b", "c"}));
  EXPECT_EQ(sentences_of_json(R"({"text": ""})", "text"), Sentences{});
}

TEST(JsonText, SaysWhatIsWrong) {
  const auto expect = [](const char* line, std::string_view what) {
    testing::expect_error(Error::Kind::kCorrupt, {what}, [&] { sentences_of_json(line, "text"); });
  };
  expect("{", "the line is not JSON");
  expect(R"({"text": "\ud800"})", "the line is not JSON");
  expect("[1]", "no object");
  expect(R"({"Text": ""})", "the object has no 'text'");
  expect(R"({"text": 5})", "'text' is neither a text nor a list of texts");
  expect(R"({"text": ["a", 5]})", "'text' has something that is no text");
}

}  // namespace
}  // namespace fleetx::data
