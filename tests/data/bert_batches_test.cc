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

// Each sample of a pack is a row of the batches that are not packed, in some place.
TEST(BertBatches, PacksHaveTheSameSamples) {
  const auto c = corpus();
  BertBatches rows = batches_of(c);
  using Sample =
      std::vector<int64_t>;  // words, sentences, hidden words and where they were, follows
  std::multiset<Sample> want, got;
  while (const auto batch = rows.next()) {
    const int64_t length = batch->at("src_ids").shape()[1];
    const int64_t most = batch->at("mask_pos").shape()[0] / batch->size;
    for (int64_t r = 0; r < batch->size; ++r) {
      const auto ints = [&](const char* name, int64_t i) {
        return batch->at(name).data<int64_t>()[static_cast<size_t>(i)];
      };
      Sample sample;
      for (int64_t i = r * length; i < (r + 1) * length; ++i)
        if (batch->at("input_mask").data<float>()[static_cast<size_t>(i)] == 0)
          sample.insert(sample.end(),
                        {ints("src_ids", i), ints("sent_ids", i), ints("pos_ids", i)});
      for (int64_t i = r * most; i < (r + 1) * most; ++i)
        if (batch->at("mask_weight").data<float>()[static_cast<size_t>(i)] == 1)
          sample.insert(sample.end(), {ints("mask_label", i), ints("mask_pos", i) - r * length});
      sample.push_back(ints("labels", r));
      want.insert(sample);
    }
  }
  BertBatchOptions o = options();
  o.text.batches = {.tokens = 100, .seed = 5};
  o.text.packed = true;
  BertBatches packs(c, testing::letters(), o);
  std::set<std::string> shapes;
  while (const auto pack = packs.next()) {
    const auto ints = [&](const char* name, int64_t i) {
      return pack->at(name).data<int64_t>()[static_cast<size_t>(i)];
    };
    std::string text;
    for (const auto& [name, tensor] : pack->feeds) text += str(name, " ", tensor.shape(), "; ");
    shapes.insert(text);
    int64_t first = 0, read = 0, hidden = 0, real = 0;
    for (const float w : pack->at("mask_weight").data<float>()) real += w == 1;
    for (int64_t s = 0; s < pack->size; ++s) {
      EXPECT_EQ(pack->at("label_weight").data<float>()[static_cast<size_t>(s)], 1);
      EXPECT_EQ(ints("read_pos", ints("seq_first", s)), first);
      EXPECT_EQ(ints("seq_first", s), read);
      read += ints("read_len", s);
      Sample sample;
      const int64_t end = first + ints("seq_len", s);
      for (int64_t i = first; i < end; ++i)
        sample.insert(sample.end(), {ints("src_ids", i), ints("sent_ids", i), ints("pos_ids", i)});
      for (; hidden < real && ints("mask_pos", hidden) < read; ++hidden)
        sample.insert(sample.end(), {ints("mask_label", hidden),
                                     ints("read_pos", ints("mask_pos", hidden)) - first});
      sample.push_back(ints("labels", s));
      got.insert(sample);
      first = end;
    }
    for (int64_t s = pack->size; s < pack->at("seq_len").numel(); ++s)
      EXPECT_EQ(ints("seq_len", s), 0);
  }
  EXPECT_EQ(got, want);
  EXPECT_EQ(shapes.size(), 1);
  EXPECT_LT(packs.padding(), 0.05);
}

TEST(BertBatches, NameWhatIsWrong) {
  using Kind = Error::Kind;
  testing::expect_error(Kind::kInvalidArgument, {"has no '[CLS]'"}, [] {
    BertBatches(corpus(), Vocabulary::parse("[PAD]\n[MASK]\na\n", "v"), options());
  });
  testing::expect_error(Kind::kInvalidArgument, {"rank 2 of 2 workers"},
                        [] { batches_of(corpus(), 2, 2); });
  auto few = options();
  few.text.packed = true;
  testing::expect_error(Kind::kInvalidArgument, {"packs need a number of tokens"},
                        [&] { BertBatches(corpus(), testing::letters(), few); });
  few.text.batches = {.tokens = 10};
  testing::expect_error(Kind::kInvalidArgument, {"tokens; a pack has 10"},
                        [&] { BertBatches(corpus(), testing::letters(), few); });
  auto o = options();
  o.text.batches.batch = 100000;
  o.text.batches.drop_last = true;
  testing::expect_error(Kind::kInvalidArgument, {"less than a batch of 100000"},
                        [&] { BertBatches(corpus(), testing::letters(), o); });
}

}  // namespace
}  // namespace fleetx::data
