#include "fleetx/data/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using Ids = std::vector<int64_t>;
constexpr auto kArgument = Error::Kind::kInvalidArgument;

// Sample i is the number i; random sleeps show an order that depends on timing.
class Numbers final : public Dataset {
 public:
  explicit Numbers(int64_t n, int64_t bad = -1) : n_(n), bad_(bad) {}
  int64_t size() const override { return n_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(const SampleId& id, std::span<void* const> out) const override {
    ++reads;
    if (id.index % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    check_file(id.index != bad_, "sample ", id.index, " is damaged");
    *static_cast<int64_t*>(out[0]) = id.index;
    auto* pair = static_cast<float*>(out[1]);
    pair[0] = static_cast<float>(id.epoch);
    pair[1] = static_cast<float>(id.index);
  }
  mutable std::atomic<int> reads = 0;

 private:
  int64_t n_, bad_;
  std::vector<Field> fields_{{"id", i64, {1}}, {"pair", f32, {2}}};
};

Ids ids(const Batch& batch) {
  const auto values = batch.at("id").data<int64_t>();
  return {values.begin(), values.end()};
}

std::vector<Ids> take(Loader& loader, int64_t batches) {
  std::vector<Ids> out;
  for (int64_t i = 0; i < batches; ++i) out.push_back(ids(loader.next()));
  return out;
}

TEST(Loader, BatchesInOrder) {
  Loader loader(std::make_shared<Numbers>(10), {.batch = 4});
  EXPECT_EQ(loader.batches(), 3);
  const std::vector<Ids> want{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}, {0, 1, 2, 3}};
  EXPECT_EQ(take(loader, 4), want);
  Loader dropping(std::make_shared<Numbers>(10), {.batch = 4, .drop_last = true});
  EXPECT_EQ(dropping.batches(), 2);
  const std::vector<Ids> dropped{{0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}};
  EXPECT_EQ(take(dropping, 3), dropped);
}

TEST(Loader, TensorsHaveTheBatchInFront) {
  Loader loader(std::make_shared<Numbers>(10), {.batch = 4});
  const Batch batch = loader.next();
  EXPECT_EQ(batch.at("id").shape(), (Shape{4, 1}));
  EXPECT_EQ(batch.at("pair").shape(), (Shape{4, 2}));
  EXPECT_EQ(batch.at("pair").data<float>()[7], 3.0f);
}

TEST(Loader, ThreadsDoNotChangeBatches) {
  std::vector<std::vector<Ids>> runs;
  for (const int threads : {0, 1, 3, 8}) {
    Loader loader(std::make_shared<Numbers>(101),
                  {.batch = 7, .shuffle = true, .seed = 3, .threads = threads, .prefetch = 2});
    runs.push_back(take(loader, 2 * loader.batches()));
  }
  for (const auto& run : runs) EXPECT_EQ(run, runs[0]);
  std::set<int64_t> first, second;
  for (size_t i = 0; i < runs[0].size(); ++i)
    (i < runs[0].size() / 2 ? first : second).insert(runs[0][i].begin(), runs[0][i].end());
  EXPECT_EQ(first.size(), 101u);
  EXPECT_EQ(second.size(), 101u);
  EXPECT_NE(runs[0][0], runs[0][runs[0].size() / 2]) << "the second epoch has another order";
}

TEST(Loader, WorkersShareTheSameOrder) {
  // Step k of two workers with batch 4 is step k of one worker with batch 8.
  Loader one(std::make_shared<Numbers>(64), {.batch = 8, .shuffle = true, .seed = 5});
  Loader a(std::make_shared<Numbers>(64),
           {.batch = 4, .shuffle = true, .seed = 5, .rank = 0, .world = 2});
  Loader b(std::make_shared<Numbers>(64),
           {.batch = 4, .shuffle = true, .seed = 5, .rank = 1, .world = 2});
  for (int step = 0; step < 16; ++step) {
    EXPECT_EQ(a.position(), one.position());
    const Ids all = ids(one.next()), first = ids(a.next()), second = ids(b.next());
    EXPECT_EQ(first, Ids(all.begin(), all.begin() + 4));
    EXPECT_EQ(second, Ids(all.begin() + 4, all.end()));
  }
}

TEST(Loader, ResumesAtExactlyTheNextBatch) {
  const LoaderOptions options{
      .batch = 6, .shuffle = true, .seed = 11, .rank = 1, .world = 3, .threads = 2};
  for (int stop = 0; stop < 9; ++stop) {
    Loader whole(std::make_shared<Numbers>(50), options);
    take(whole, stop);
    const Position position = whole.position();
    Loader resumed(std::make_shared<Numbers>(50), options);
    resumed.seek(position);
    EXPECT_EQ(resumed.position(), position);
    EXPECT_EQ(take(resumed, 7), take(whole, 7)) << "after " << stop;
    EXPECT_EQ(resumed.position(), whole.position());
  }
}

TEST(Loader, SeekGoesBackAndForth) {
  Loader loader(std::make_shared<Numbers>(20), {.batch = 5, .threads = 2});
  const auto first = take(loader, 6);
  EXPECT_EQ(loader.position(), (Position{1, 10}));
  loader.seek({0, 0});
  EXPECT_EQ(take(loader, 6), first);
  loader.seek({0, 20});  // the end of an epoch is the beginning of the next
  EXPECT_EQ(loader.position(), (Position{1, 0}));
  expect_error(kArgument, {"-1"}, [&] { loader.seek({-1, 0}); });
}

TEST(Loader, ErrorsComeInPlaceOfTheirBatch) {
  for (const int threads : {0, 3}) {
    Loader loader(std::make_shared<Numbers>(20, 12), {.batch = 5, .threads = threads});
    EXPECT_EQ(ids(loader.next())[0], 0);
    EXPECT_EQ(ids(loader.next())[0], 5);
    expect_error(Error::Kind::kCorrupt, {"sample 12"}, [&] { loader.next(); });
  }
}

TEST(Loader, PrefetchIsBounded) {
  auto numbers = std::make_shared<Numbers>(1000);
  Loader loader(numbers, {.batch = 2, .threads = 2, .prefetch = 3});
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GE(numbers->reads, 6);
  EXPECT_LE(numbers->reads, 2 * (3 + 1));
}

TEST(Loader, CanBeDestroyedAtAnyTime) {
  for (int i = 0; i < 20; ++i) {
    Loader loader(std::make_shared<Numbers>(1000), {.batch = 50, .threads = 4});
    if (i % 2) loader.next();
  }
}

TEST(Loader, BadOptionsAreNamed) {
  const auto data = std::make_shared<Numbers>(10);
  expect_error(kArgument, {"batch is 0"}, [&] { Loader(data, {.batch = 0}); });
  expect_error(kArgument, {"rank 2 of 2"}, [&] { Loader(data, {.rank = 2, .world = 2}); });
  expect_error(kArgument, {"empty"}, [&] { Loader(std::make_shared<Numbers>(0), {}); });
  expect_error(kArgument, {"batch of 32", "drop_last"}, [&] { Loader(data, {.drop_last = true}); });
  expect_error(kArgument, {"'b' has 3 rows", "'a' has 2"}, [&] {
    TensorDataset({{"a", Tensor(f32, {2, 1})}, {"b", Tensor(f32, {3, 1})}});
  });
}

TEST(Loader, TensorsAreADataset) {
  Loader loader(std::make_shared<TensorDataset>(std::map<std::string, Tensor>{
                    {"x", Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})},
                    {"y", Tensor::of<int64_t>({3}, {7, 8, 9})}}),
                {.batch = 2, .threads = 0});
  loader.next();
  const Batch last = loader.next();
  EXPECT_EQ(last.at("x").shape(), (Shape{1, 2}));
  EXPECT_EQ(last.at("x").data<float>()[1], 6.0f);
  EXPECT_EQ(last.at("y").item<int64_t>(), 9);
}

TEST(Loader, ReusesMemoryOfReleasedBatches) {
  Batch kept;
  {
    Loader loader(std::make_shared<Numbers>(40), {.batch = 4, .threads = 0});
    const void* first = loader.next().at("id").raw();
    kept = loader.next();
    EXPECT_EQ(kept.at("id").raw(), first);
    EXPECT_NE(loader.next().at("id").raw(), first) << "not while somebody holds it";
  }
  EXPECT_EQ(ids(kept), (Ids{4, 5, 6, 7})) << "a batch outlives its loader";
}

}  // namespace
}  // namespace fleetx::data
