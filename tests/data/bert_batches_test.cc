#include "fleetx/data/bert_batches.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/data/letters.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

std::shared_ptr<const TextCorpus> corpus() {
  std::string text;
  for (int d = 0; d < 30; ++d, text += "\n")
    for (int s = 0; s < 9; ++s, text += "\n")
      for (int t = 0; t < 2 + (5 * s + d) % 7; ++t)
        text += str(static_cast<char>('a' + (3 * d + s + t) % 26), " ");
  const testing::TempDir folder;
  return std::make_shared<TextCorpus>(WordPiece(testing::letters()),
                                      CorpusOptions{.files = {folder.write("t", text)}});
}

BertBatchOptions options(int rank = 0, int world = 1) {
  return {.text = {.batches = {.batch = 4, .seed = 5}, .rank = rank, .world = world},
          .max_length = 24};
}

BertBatches batches_of(const std::shared_ptr<const TextCorpus>& c, int rank = 0, int world = 1) {
  return BertBatches(c, testing::letters(), options(rank, world));
}

// With the hidden words put back, a row is [CLS] a [SEP] b [SEP] of words of the corpus.
TEST(BertBatches, HaveWholeRows) {
  BertBatches batches(corpus(), testing::letters(), options());
  int64_t count = 0;
  while (const auto batch = batches.next()) {
    const int64_t rows = batch->size, length = batch->at("src_ids").shape()[1];
    const int64_t most = batch->at("mask_pos").shape()[0] / rows;
    EXPECT_EQ(most, Masking(testing::letters(), 0.15).count(length - 3));
    auto words = batch->at("src_ids").clone();
    for (int64_t i = 0; i < rows * most; ++i) {
      const auto k = static_cast<size_t>(i);
      const auto place = static_cast<size_t>(batch->at("mask_pos").data<int64_t>()[k]);
      EXPECT_EQ(static_cast<int64_t>(place) / length, i / most);
      if (batch->at("mask_weight").data<float>()[k] == 0) continue;
      words.data<int64_t>()[place] = batch->at("mask_label").data<int64_t>()[k];
    }
    for (int64_t r = 0; r < rows; ++r) {
      const auto at = [&](const char* name, int64_t i) {
        return batch->at(name).data<int64_t>()[static_cast<size_t>(r * length + i)];
      };
      EXPECT_EQ(at("src_ids", 0), 2);
      int64_t ends = 0;
      for (int64_t i = 0; i < length; ++i) {
        const int64_t word = words.data<int64_t>()[static_cast<size_t>(r * length + i)];
        const float mask =
            batch->at("input_mask").data<float>()[static_cast<size_t>(r * length + i)];
        EXPECT_EQ(at("pos_ids", i), i);
        EXPECT_EQ(at("sent_ids", i), ends == 1);
        EXPECT_EQ(mask, ends == 2 ? kHiddenScore : 0.0f);
        EXPECT_EQ(word == 0, ends == 2);
        EXPECT_TRUE(i == 0 || word == 0 || word == 3 || word >= 5) << word;
        ends += word == 3;
      }
      EXPECT_EQ(ends, 2);
    }
    count += rows;
  }
  EXPECT_EQ(count, batches.samples());
  EXPECT_FALSE(batches.next());
}

// Step i of two workers has batches 2i and 2i + 1 of one worker.
TEST(BertBatches, AreTheSameForAnyNumberOfWorkers) {
  const auto c = corpus();
  BertBatches one = batches_of(c), first = batches_of(c, 0, 2), second = batches_of(c, 1, 2);
  for (const int64_t epoch : {0, 2}) {
    for (BertBatches* b : {&one, &first, &second}) b->begin_pass(epoch);
    EXPECT_EQ(first.batches(), (one.batches() + 1) / 2);
    EXPECT_EQ(second.batches(), first.batches());
    for (int64_t i = 0; i < one.batches(); ++i) {
      const Batch want = *one.next(), got = i % 2 == 0 ? *first.next() : *second.next();
      for (const auto& [name, tensor] : want.feeds) {
        ASSERT_EQ(got.at(name).shape(), tensor.shape());
        EXPECT_EQ(std::memcmp(got.at(name).raw(), tensor.raw(), tensor.bytes()), 0) << name;
      }
    }
  }
}

TEST(BertBatches, DifferFromPassToPass) {
  BertBatches batches(corpus(), testing::letters(), options());
  const Batch first = *batches.next();
  batches.begin_pass(1);
  const Batch second = *batches.next();
  const Tensor a = first.at("src_ids"), b = second.at("src_ids");
  EXPECT_TRUE(a.shape() != b.shape() || std::memcmp(a.raw(), b.raw(), a.bytes()) != 0);
}

TEST(BertBatches, NameWhatIsWrong) {
  using Kind = Error::Kind;
  testing::expect_error(Kind::kInvalidArgument, {"has no '[CLS]'"}, [] {
    BertBatches(corpus(), Vocabulary::parse("[PAD]\n[MASK]\na\n", "v"), options());
  });
  testing::expect_error(Kind::kInvalidArgument, {"rank 2 of 2 workers"},
                        [] { batches_of(corpus(), 2, 2); });
  auto o = options();
  o.text.batches.batch = 100000;
  o.text.batches.drop_last = true;
  testing::expect_error(Kind::kInvalidArgument, {"less than a batch of 100000"},
                        [&] { BertBatches(corpus(), testing::letters(), o); });
}

}  // namespace
}  // namespace fleetx::data
