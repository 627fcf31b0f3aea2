#include "fleetx/data/sentence_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/data/letters.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

// 40 documents of 25 sentences of 4 to 12 tokens.
TextCorpus small_corpus() {
  std::string text;
  for (int d = 0; d < 40; ++d, text += "\n")
    for (int s = 0; s < 25; ++s, text += "\n")
      for (int t = 0; t < 4 + (7 * s + d) % 9; ++t)
        text += str(t > 0 ? " " : "", static_cast<char>('a' + (s + t) % 26));
  const testing::TempDir folder;
  return TextCorpus(WordPiece(testing::letters()), {.files = {folder.write("t", text)}});
}

bool operator==(const Part& a, const Part& b) {
  return a.sentence == b.sentence && a.skip == b.skip && a.length == b.length;
}
bool same(const std::vector<SentencePair>& a, const std::vector<SentencePair>& b) {
  return std::ranges::equal(a, b, [](const SentencePair& x, const SentencePair& y) {
    return x.first == y.first && x.second == y.second && x.follows == y.follows;
  });
}

TEST(SentencePairs, FillTheLengthAndFollowHalfOfTheTime) {
  const TextCorpus c = small_corpus();
  int64_t follows = 0, full = 0, pairs = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    for (const SentencePair& p : sentence_pairs(c, {.max_length = 40, .seed = 3}, epoch)) {
      EXPECT_GE(p.first.length, 1);
      EXPECT_GE(p.second.length, 1);
      EXPECT_LE(p.length(), 40);
      ++pairs, follows += p.follows, full += p.length() >= 38;
    }
  }
  EXPECT_GT(pairs, 20 * 40 * 25 * 8 / 40 / 2);
  EXPECT_NEAR(static_cast<double>(follows) / static_cast<double>(pairs), 0.47,
              0.06);  // ends of documents are random
  EXPECT_GT(static_cast<double>(full) / static_cast<double>(pairs), 0.5);
}

TEST(SentencePairs, FollowInTheirDocumentOrComeFromAnother) {
  const TextCorpus c = small_corpus();
  const auto document = [](const Part& p) { return p.sentence / 25; };
  for (const SentencePair& p :
       sentence_pairs(c, {.max_length = 40, .short_rate = 0, .seed = 1}, 0)) {
    EXPECT_EQ(document(p.first) == document(p.second), p.follows);
    EXPECT_TRUE(!p.follows || p.second.sentence > p.first.sentence);
  }
}

// Every sentence is in some pair, either as a first part or as a second that follows.
TEST(SentencePairs, LeaveNothingOut) {
  const TextCorpus c = small_corpus();
  std::vector<bool> seen(static_cast<size_t>(c.sentences()));
  for (const SentencePair& p :
       sentence_pairs(c, {.max_length = 512, .short_rate = 0, .seed = 1}, 0)) {
    const int64_t length = p.first.length + (p.follows ? p.second.length : 0);
    for (int64_t s = p.first.sentence, n = 0; n < length; n += c.count_tokens(s, s + 1), ++s)
      seen[static_cast<size_t>(s)] = true;
  }
  EXPECT_EQ(std::ranges::count(seen, false), 0);
}

TEST(SentencePairs, AreTwoSentencesWhereTheyAreNotFilled) {
  const TextCorpus c = small_corpus();
  int64_t follows = 0, pairs = 0;
  for (const SentencePair& p : sentence_pairs(c, {.max_length = 40, .fill = false, .seed = 1}, 0)) {
    EXPECT_EQ(p.first.length, c.count_tokens(p.first.sentence, p.first.sentence + 1));
    EXPECT_EQ(p.second.length, c.count_tokens(p.second.sentence, p.second.sentence + 1));
    EXPECT_TRUE(!p.follows || p.second.sentence == p.first.sentence + 1);
    ++pairs, follows += p.follows;
  }
  EXPECT_NEAR(static_cast<double>(follows) / static_cast<double>(pairs), 0.47, 0.06);
}

TEST(SentencePairs, DependOnSeedAndEpoch) {
  const TextCorpus c = small_corpus();
  const PairOptions o{.max_length = 40, .seed = 1}, other{.max_length = 40, .seed = 2};
  EXPECT_TRUE(same(sentence_pairs(c, o, 0), sentence_pairs(c, o, 0)));
  EXPECT_FALSE(same(sentence_pairs(c, o, 0), sentence_pairs(c, o, 1)));
  EXPECT_FALSE(same(sentence_pairs(c, o, 0), sentence_pairs(c, other, 0)));
}

TEST(SentencePairs, NeedTwoDocuments) {
  const testing::TempDir folder;
  const TextCorpus one(WordPiece(testing::letters()), {.files = {folder.write("t", "a\nb\n")}});
  testing::expect_error(Error::Kind::kInvalidArgument,
                        {"/t: next-sentence pairs need at least two documents", "there is 1"},
                        [&] { sentence_pairs(one, {}, 0); });
  testing::expect_error(Error::Kind::kInvalidArgument, {"max_length is 4"},
                        [&] { sentence_pairs(one, {.max_length = 4}, 0); });
}

}  // namespace
}  // namespace fleetx::data
