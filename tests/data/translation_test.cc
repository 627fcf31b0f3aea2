#include "fleetx/data/translation.h"

#include <gtest/gtest.h>

#include "fleetx/data/bpe.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using testing::TempDir;
using Kind = Error::Kind;

// <s> 0, <e> 1, <unk> 2, a 3, b 4, c 5
const Vocabulary& vocabulary() {
  static const Vocabulary v = parse_bpe_vocabulary("a\nb\nc\n", "v");
  return v;
}
const Bpe& tokenizer() {
  static const Bpe bpe(BpeCodes::parse("x y\n", "codes"), vocabulary());
  return bpe;
}
TranslationPairs pairs_of(const TranslationOptions& o) {
  return TranslationPairs(tokenizer(), tokenizer(), o);
}

std::vector<int32_t> list(std::span<const int32_t> tokens) {
  return {tokens.begin(), tokens.end()};
}

TEST(Translation, ReadsTwoFilesAndTabs) {
  const TempDir folder;
  const std::string a = folder.write("a", "a b\nc\n"), b = folder.write("b", "c\nb a\n"),
                    both = folder.write("both", "a b\tc\nc\tb a\n");
  for (const TranslationOptions& o :
       {TranslationOptions{.source = a, .target = b}, TranslationOptions{.source = both}}) {
    const TranslationPairs pairs = pairs_of(o);
    ASSERT_EQ(pairs.size(), 2);
    EXPECT_EQ(list(pairs.source(0)), (std::vector<int32_t>{3, 4}));
    EXPECT_EQ(list(pairs.target(0)), std::vector<int32_t>{5});
    EXPECT_EQ(list(pairs.target(1)), (std::vector<int32_t>{4, 3}));
  }
}

TEST(Translation, FollowsThePolicies) {
  const TempDir folder;
  const std::string a = folder.write("a", "a\n\xff\nb\n\nc c c\n"),
                    b = folder.write("b", "a\nb\nb\nc\nc\n");
  TranslationOptions o{.source = a, .target = b, .max_length = 3};
  expect_error(Kind::kCorrupt, {"a:2: byte 1 is not UTF-8"}, [&] { pairs_of(o); });
  o.bad_lines = BadText::kSkip;
  EXPECT_EQ(pairs_of(o).size(), 2);  // lines 1 and 3: those of the same number stay together
  EXPECT_EQ(list(pairs_of(o).source(1)), std::vector<int32_t>{4});
  EXPECT_EQ(list(pairs_of(o).target(1)), std::vector<int32_t>{4});
  EXPECT_EQ(pairs_of(o).bad_lines(), 2);
  EXPECT_EQ(pairs_of(o).long_lines(), 1);
  o.long_lines = BadText::kReplace;
  EXPECT_EQ(list(pairs_of(o).source(2)), (std::vector<int32_t>{5, 5}));
  o.long_lines = BadText::kStop;
  expect_error(Kind::kCorrupt, {"a:5: a pair of 3 and 1 tokens; at most 2"}, [&] { pairs_of(o); });
}

TEST(Translation, NamesWhatIsWrong) {
  const TempDir folder;
  const std::string a = folder.write("a", "a\nb\n"), b = folder.write("b", "a\n"),
                    tab = folder.write("tab", "a\tb\tc\n");
  expect_error(Kind::kCorrupt, {"a has 2 lines, but ", "b has 1"},
               [&] { pairs_of({.source = a, .target = b}); });
  expect_error(Kind::kCorrupt, {"tab:1: expected source, a tab, and target"},
               [&] { pairs_of({.source = tab}); });
  expect_error(Kind::kCorrupt, {"e:1: the target is empty"},
               [&] { pairs_of({.source = folder.write("e", "a\t\n")}); });
  expect_error(Kind::kCorrupt, {"n: no pairs of lines"},
               [&] { pairs_of({.source = folder.write("n", "")}); });
}

TEST(Translation, MakesPacks) {
  const TempDir folder;
  const auto pairs = std::make_shared<TranslationPairs>(
      tokenizer(), tokenizer(),
      TranslationOptions{.source = folder.write("t", "a b c\tc\na\tb a\nb\tb\n")});
  // 4 + 2 + 2 tokens of sources, 2 + 3 + 2 of targets.
  TranslationBatches batches(pairs, vocabulary(), vocabulary(),
                             {.batches = {.tokens = 16, .shuffle = false}, .packed = true});
  const Batch batch = *batches.next();
  EXPECT_FALSE(batches.next());
  EXPECT_EQ(batch.size, 3);
  const auto ints = [&](const char* name, size_t n) {
    const auto values = batch.at(name).data<int64_t>();
    return std::vector<int64_t>(values.begin(), values.begin() + static_cast<ptrdiff_t>(n));
  };
  EXPECT_EQ(batch.at("src_word").shape(), (Shape{1, 16}));
  EXPECT_EQ(batch.at("lbl_word").shape(), (Shape{1, 16, 1}));
  EXPECT_EQ(ints("src_word", 9), (std::vector<int64_t>{3, 4, 5, 1, 3, 1, 4, 1, 1}));
  EXPECT_EQ(ints("src_pos", 9), (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 0, 1, 0}));
  EXPECT_EQ(ints("src_len", 4), (std::vector<int64_t>{4, 2, 2, 0}));
  EXPECT_EQ(ints("trg_word", 8), (std::vector<int64_t>{0, 5, 0, 4, 3, 0, 4, 1}));
  EXPECT_EQ(ints("lbl_word", 8), (std::vector<int64_t>{5, 1, 4, 3, 1, 4, 1, 1}));
  EXPECT_EQ(ints("trg_len", 4), (std::vector<int64_t>{2, 3, 2, 0}));
  const auto weights = batch.at("lbl_weight").data<float>();
  EXPECT_EQ(std::vector<float>(weights.begin(), weights.begin() + 9),
            (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 0, 0}));
}

TEST(Translation, MakesBatches) {
  const TempDir folder;
  const auto pairs = std::make_shared<TranslationPairs>(
      tokenizer(), tokenizer(),
      TranslationOptions{.source = folder.write("t", "a b c\tc\na\tb a\n")});
  TranslationBatches batches(pairs, vocabulary(), vocabulary(),
                             {.batches = {.tokens = 64, .multiple = 1, .shuffle = false}});
  const Batch batch = *batches.next();
  EXPECT_FALSE(batches.next());
  const auto ints = [&](const char* name) {
    const auto values = batch.at(name).data<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  };
  EXPECT_EQ(batch.at("src_word").shape(), (Shape{2, 4}));
  EXPECT_EQ(ints("src_word"), (std::vector<int64_t>{3, 4, 5, 1, 3, 1, 1, 1}));
  EXPECT_EQ(ints("trg_word"), (std::vector<int64_t>{0, 5, 1, 0, 4, 3}));
  EXPECT_EQ(ints("lbl_word"), (std::vector<int64_t>{5, 1, 1, 4, 3, 1}));
  EXPECT_EQ(ints("trg_pos"), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  const auto weights = batch.at("lbl_weight").data<float>();
  EXPECT_EQ(std::vector<float>(weights.begin(), weights.end()),
            (std::vector<float>{1, 1, 0, 1, 1, 1}));
  const auto mask = batch.at("src_mask").data<float>();
  EXPECT_EQ(std::vector<float>(mask.begin(), mask.end()),
            (std::vector<float>{0, 0, 0, 0, 0, 0, kHiddenScore, kHiddenScore}));
  expect_error(Kind::kInvalidArgument, {"has no '<e>'"}, [&] {
    TranslationBatches(pairs, Vocabulary::parse("a\n", "v"), vocabulary(),
                       {.batches = {.batch = 1}});
  });
}

}  // namespace
}  // namespace fleetx::data
