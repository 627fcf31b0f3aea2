#include "fleetx/data/text_corpus.h"

#include <gtest/gtest.h>

#include "tests/data/letters.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using testing::TempDir;
using Kind = Error::Kind;

TextCorpus corpus_of(const CorpusOptions& options) {
  return TextCorpus(WordPiece(testing::letters()), options);
}

std::vector<int32_t> tokens_of(const TextCorpus& c, int64_t first, int64_t last) {
  const auto tokens = c.tokens(first, last);
  return {tokens.begin(), tokens.end()};
}

TEST(TextCorpus, HasSentencesAndDocuments) {
  const TempDir folder;
  const TextCorpus c =
      corpus_of({.files = {folder.write("a", "\na b\nc\n\n \nd\n"), folder.write("b", "e f\n")}});
  EXPECT_EQ(c.documents(), 3);  // the end of a file ends a document, too
  EXPECT_EQ(c.sentences(), 4);
  EXPECT_EQ(c.first_sentence(1), 2);
  EXPECT_EQ(c.first_sentence(3), 4);
  EXPECT_EQ(tokens_of(c, 0, 2), (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(tokens_of(c, 3, 4), (std::vector<int32_t>{9, 10}));
}

TEST(TextCorpus, ReadsJsonLines) {
  const TempDir folder;
  const std::string file =
      folder.write("a.jsonl", "{\"text\": \"a b\\nc\"}\n\nno\n{\"text\": [\"d\"]}\n");
  const CorpusOptions options{.files = {file}, .format = CorpusFormat::kJsonLines};
  expect_error(Kind::kCorrupt, {"a.jsonl:3: the line is not JSON"}, [&] { corpus_of(options); });
  for (const BadText policy : {BadText::kSkip, BadText::kReplace}) {
    CorpusOptions skip = options;
    skip.bad_lines = policy;
    const TextCorpus c = corpus_of(skip);
    EXPECT_EQ(c.documents(), 2);
    EXPECT_EQ(c.sentences(), 3);
    EXPECT_EQ(c.bad_lines(), 1);
  }
  expect_error(Kind::kInvalidArgument, {"format is 'csv'; known: text, jsonl"},
               [] { corpus_format_of("csv"); });
}

TEST(TextCorpus, FollowsThePolicyForLongSentences) {
  const TempDir folder;
  CorpusOptions o{.files = {folder.write("t", "a\nb c d\n")},
                  .max_tokens = 2,
                  .long_sentences = BadText::kStop};
  expect_error(Kind::kCorrupt, {"t:2: a sentence of 3 tokens; at most 2"}, [&] { corpus_of(o); });
  o.long_sentences = BadText::kSkip;
  EXPECT_EQ(tokens_of(corpus_of(o), 0, 1), std::vector<int32_t>{5});
  EXPECT_EQ(corpus_of(o).sentences(), 1);
  o.long_sentences = BadText::kReplace;
  EXPECT_EQ(tokens_of(corpus_of(o), 0, 2), (std::vector<int32_t>{5, 6, 7}));
  EXPECT_EQ(corpus_of(o).long_sentences(), 1);
}

TEST(TextCorpus, NeedsSentences) {
  const TempDir folder;
  const std::string empty = folder.write("empty", "\n\n");
  expect_error(Kind::kCorrupt, {"empty: no sentences"}, [&] { corpus_of({.files = {empty}}); });
  expect_error(Kind::kInvalidArgument, {"at least one file"}, [&] { corpus_of({}); });
}

}  // namespace
}  // namespace fleetx::data
