#include "fleetx/ps/sparse_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "fleetx/base/rng.h"
#include "fleetx/ps/id_batch.h"
#include "fleetx/ps/row_index.h"
#include "tests/ps/job.h"

namespace fleetx::ps {
namespace {

SparseSpec spec_of(int64_t dim, UpdateRulePtr rule) {
  return {.name = "t",
          .dim = dim,
          .rule = std::move(rule),
          .initializer = {.kind = Initializer::Kind::kNormal, .a = 0, .b = 1, .seed = 5}};
}

TEST(RowIndex, FindsAllIdsWhileItGrows) {
  RowIndex index;
  for (uint32_t i = 0; i < 50'000; ++i) {
    const uint64_t id = i % 3 == 0 ? i : mix(i, 1);  // 0 is an id as any other
    ASSERT_EQ(index.find(hash_id(id)), RowIndex::kNone);
    index.insert(hash_id(id), i);
  }
  EXPECT_EQ(index.size(), 50'000u);
  EXPECT_LT(index.bytes(), (50'000u + (1u << 14)) * 16);  // a small index grows by up to 16,384 ids
  for (uint32_t i = 0; i < 50'000; ++i) {
    const uint64_t id = i % 3 == 0 ? i : mix(i, 1);
    ASSERT_EQ(index.find(hash_id(id)), i);
  }
  EXPECT_EQ(index.find(hash_id(UINT64_MAX)), RowIndex::kNone);
}

// At the greatest load, where many ids are not in their own bucket.
TEST(RowIndex, FindsAllOthersWhileIdsAreTakenOut) {
  for (const uint32_t most : {5u, 40u, 3000u}) {
    RowIndex index;
    index.reserve(most);
    std::map<uint64_t, uint32_t> expected;
    const auto bytes = index.bytes();
    for (uint32_t i = 0; i < 20'000; ++i) {
      const uint64_t id = mix(i, 3);
      if (expected.size() == index.capacity()) {
        for (uint32_t n = 0; n <= i % 4; ++n) {
          const uint64_t gone = std::next(expected.begin(), mix(i, n) % expected.size())->first;
          index.erase(hash_id(gone));
          expected.erase(gone);
        }
      }
      index.insert(hash_id(id), i);
      expected[id] = i;
      ASSERT_EQ(index.size(), expected.size());
      for (const auto& [known, row] : expected) {
        ASSERT_EQ(index.find(hash_id(known)), row);
        if (i % 97 != 0 && most > 50) break;
      }
      ASSERT_EQ(index.find(hash_id(mix(i, 4))), RowIndex::kNone);
    }
    EXPECT_EQ(index.bytes(), bytes) << "it need not grow";
  }
}

// Ids that want one bucket, whatever the number of buckets: most of them are outside.
TEST(RowIndex, HoldsIdsThatWereChosenToCollide) {
  RowIndex index;
  const auto id_at = [](uint64_t i) { return id_of_hash(i << 32 | 0x89abcdef); };
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(hash_id(id_at(i)), uint64_t{i} << 32 | 0x89abcdef);
    ASSERT_EQ(index.find(hash_id(id_at(i))), RowIndex::kNone);
    index.insert(hash_id(id_at(i)), i);
  }
  for (uint32_t i = 0; i < 1000; i += 3) index.erase(hash_id(id_at(i)));
  index.reserve(10'000);
  for (uint32_t i = 0; i < 1000; ++i)
    ASSERT_EQ(index.find(hash_id(id_at(i))), i % 3 == 0 ? RowIndex::kNone : i);
  std::map<uint64_t, uint32_t> all;
  index.for_each([&](uint64_t id, uint32_t row) { all[id] = row; });
  EXPECT_EQ(all.size(), index.size());
  for (const auto& [id, row] : all) EXPECT_EQ(id, id_at(row));
}

// Hashes that differ in their last bits only, and the first and the last ones: what is stored of
// them beside their bucket tells them apart, however many buckets there are.
TEST(RowIndex, TellsAllHashesApart) {
  for (const uint32_t others : {0u, 20u, 500u, 30'000u, 400'000u}) {
    RowIndex index;
    std::map<uint64_t, uint32_t> expected;
    const auto add = [&](uint64_t hash) {
      const auto [at, is_new] = expected.emplace(hash, expected.size());
      if (is_new) index.insert(hash, at->second);
    };
    for (uint64_t i = 0; i < 30; ++i)
      for (const uint64_t begin : {uint64_t{0}, uint64_t{1} << 31, uint64_t{5} << 40, ~uint64_t{0}})
        add(begin + (i % 2 == 0 ? i : ~i + 1));
    for (uint32_t i = 0; i < others; ++i) add(hash_id(i));
    ASSERT_EQ(index.size(), expected.size());
    for (const auto& [hash, row] : expected) ASSERT_EQ(index.find(hash), row) << hash;
    for (uint64_t i = 100; i < 200; ++i) ASSERT_EQ(index.find(i), RowIndex::kNone);
    size_t visited = 0;
    index.for_each([&](uint64_t id, uint32_t row) {
      ++visited;
      ASSERT_EQ(expected.at(hash_id(id)), row);
    });
    EXPECT_EQ(visited, expected.size());
  }
}

// So many rows that ids of one request are in all buckets of a search, are made meanwhile, and
// stand there twice.
TEST(SparseTable, ARequestIsItsIdsOneByOne) {
  for (const int64_t min_count : {1, 2}) {
    SparseSpec spec = spec_of(5, add_rule());
    spec.min_count = min_count;
    SparseTable together(spec), one_by_one(spec);
    const Philox random(4, static_cast<uint64_t>(min_count));
    uint32_t draw = 0;
    for (int round = 0; round < 30; ++round) {
      std::vector<uint64_t> ids(1 + random.bits(draw++) % 3000);
      for (uint64_t& id : ids) id = mix(9, random.bits(draw++) % 40'000);
      std::vector<float> rows(ids.size() * 5), expected(rows.size());
      const Absent absent = round % 3 == 0 ? Absent::kZero : Absent::kMake;
      together.pull(ids, rows.data(), absent);
      for (size_t i = 0; i < ids.size(); ++i)
        one_by_one.pull({&ids[i], 1}, expected.data() + 5 * i, absent);
      ASSERT_EQ(rows, expected) << round;
      std::ranges::sort(ids);
      ids.erase(std::ranges::unique(ids).begin(), ids.end());
      rows.assign(ids.size() * 5, 0.25f);
      together.push(ids, rows.data(), 1);
      for (size_t i = 0; i < ids.size(); ++i) one_by_one.push({&ids[i], 1}, rows.data() + 5 * i, 1);
      ASSERT_EQ(together.rows(), one_by_one.rows());
    }
  }
}

// Against the plain definition, with repeated ids, groups that are not full, and all dimensions
// that have code of their own.
TEST(SparseTable, PullsAndPushesAsTheDefinition) {
  for (const int64_t dim : {1, 3, 4, 8, 9, 10, 16, 32, 64, 70}) {
    const SparseSpec spec = spec_of(dim, counting());
    for (const int threads : {1, 4}) {
      SparseTable table(spec, threads);
      std::map<uint64_t, std::vector<float>> expected;
      const auto row_of = [&](uint64_t id) -> std::vector<float>& {
        auto [it, is_new] = expected.try_emplace(id);
        if (is_new) {
          it->second.resize(static_cast<size_t>(dim));
          spec.initializer.fill(stable_hash("t"), id, it->second);
        }
        return it->second;
      };
      for (uint64_t step = 0; step < 5; ++step) {
        std::vector<uint64_t> ids;
        for (uint64_t i = 0; i < 77 + step; ++i) ids.push_back(mix(step, i) % 200);
        std::vector<float> rows(ids.size() * static_cast<size_t>(dim));
        table.pull(ids, rows.data());
        for (size_t i = 0; i < ids.size(); ++i)
          for (int64_t k = 0; k < dim; ++k)
            ASSERT_EQ(rows[i * static_cast<size_t>(dim) + static_cast<size_t>(k)],
                      row_of(ids[i])[static_cast<size_t>(k)]);
        std::vector<int64_t> given(ids.begin(), ids.end());
        const IdBatch batch(given, 1);
        std::vector<float> gradients(batch.unique().size() * static_cast<size_t>(dim));
        for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 13) - 6;
        table.push(batch.unique(), gradients.data(), 0.125f);
        for (size_t u = 0; u < batch.unique().size(); ++u)
          for (int64_t k = 0; k < dim; ++k)
            row_of(batch.unique()[u])[static_cast<size_t>(k)] -=
                0.125f * gradients[u * static_cast<size_t>(dim) + static_cast<size_t>(k)] *
                static_cast<float>(step + 1);
      }
      EXPECT_EQ(table.rows(), static_cast<int64_t>(expected.size()));
      EXPECT_EQ(table.scalars(), std::vector<float>{6});
    }
  }
}

TEST(SparseTable, FirstValuesDependOnSeedTableAndIdOnly) {
  SparseTable a(spec_of(4, sgd())), b(spec_of(4, momentum()), 2);
  const std::vector<uint64_t> forth{1, 2, 3}, back{3, 2, 1};
  std::vector<float> x(12), y(12);
  a.pull(forth, x.data());
  b.pull(back, y.data());
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(x[k], y[8 + k]);
    EXPECT_EQ(x[4 + k], y[4 + k]);
    EXPECT_NE(x[k], x[4 + k]);
  }
  SparseSpec other = spec_of(4, sgd());
  other.name = "u";
  SparseTable c(other);
  c.pull(forth, y.data());
  EXPECT_NE(x[0], y[0]);
}

TEST(SparseTable, InferenceMakesNoRows) {
  SparseTable table(spec_of(2, sgd()));
  const std::vector<uint64_t> ids{7, 8};
  std::vector<float> rows(4, 1);
  table.pull(ids, rows.data(), Absent::kZero);
  EXPECT_EQ(rows, std::vector<float>(4, 0));
  EXPECT_EQ(table.rows(), 0);
}

TEST(SparseTable, AdmitsIdsByCount) {
  SparseSpec spec = spec_of(2, sgd());
  spec.min_count = 3;
  SparseTable table(spec);
  const std::vector<uint64_t> ids{7};
  const std::vector<float> gradient{1, 1};
  std::vector<float> row(2, 1), first(2);
  for (int push = 0; push < 3; ++push) {
    table.pull(ids, row.data());
    EXPECT_EQ(row, std::vector<float>(2, 0)) << push;
    EXPECT_EQ(table.rows(), 0);
    table.push(ids, gradient.data(), 0.5f);
  }
  EXPECT_EQ(table.rows(), 1);
  table.pull(ids, row.data());
  spec.initializer.fill(stable_hash("t"), 7, first);
  EXPECT_EQ(row[0], first[0] - 0.5f);
}

TEST(SparseTable, AdmitsIdsByProbability) {
  SparseSpec spec = spec_of(1, sgd());
  spec.probability = 0.25;
  SparseTable table(spec);
  std::vector<uint64_t> ids(10'000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector<float> rows(ids.size());
  for (int time = 0; time < 3; ++time) table.pull(ids, rows.data());  // the same ids every time
  EXPECT_NEAR(static_cast<double>(table.rows()), 2500, 150);
}

TEST(SparseTable, DropsRows) {
  SparseTable table(spec_of(2, sgd()));
  std::vector<uint64_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::vector<float> before(2000), after(2000);
  table.pull(ids, before.data());
  EXPECT_EQ(table.drop([](uint64_t id, std::span<const float>) { return id % 2 == 0; }), 500);
  EXPECT_EQ(table.rows(), 500);
  table.pull(ids, after.data(), Absent::kZero);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(after[2 * i], i % 2 == 0 ? before[2 * i] : 0);
}

// Every addition must arrive: threads share shards, rows and the growing index.
TEST(SparseTable, ThreadsLoseNothing) {
  SparseSpec spec = spec_of(4, add_rule());
  spec.initializer = {};
  constexpr int kThreads = 4, kPushes = 200;
  SparseTable table(spec, kThreads);
  std::vector<std::thread> team;
  for (int t = 0; t < kThreads; ++t)
    team.emplace_back([&, t] {
      std::vector<uint64_t> ids(100);
      const std::vector<float> ones(400, 1);
      for (int p = 0; p < kPushes; ++p) {
        for (size_t i = 0; i < ids.size(); ++i)
          ids[i] = (i + static_cast<size_t>(p * (t + 1))) % 5000;
        table.push(ids, ones.data(), 0);
      }
    });
  for (std::thread& thread : team) thread.join();
  double sum = 0;
  table.for_each([&](uint64_t, std::span<const float> record) { sum += record[0]; });
  EXPECT_EQ(sum, kThreads * kPushes * 100.0);
}

TEST(SparseTable, MemoryPerRow) {
  SparseTable table(spec_of(16, sgd()));
  std::vector<uint64_t> ids(10'000);
  std::vector<float> rows(ids.size() * 16);
  for (uint64_t begin = 0; begin < 600'000; begin += ids.size()) {
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = mix(3, begin + i);
    table.pull(ids, rows.data());
    if (begin < 50'000) continue;  // some bytes of each shard count there
    EXPECT_LE(static_cast<double>(table.bytes()), 1.25 * 64 * static_cast<double>(table.rows()))
        << begin;
  }
}

TEST(IdBatch, GroupsByServer) {
  const std::vector<int64_t> ids{5, 3, 5, -1, 4, 3, 8};
  const IdBatch batch(ids, 3);
  ASSERT_EQ(batch.unique().size(), 5u);
  for (size_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(static_cast<int64_t>(batch.unique()[batch.places()[i]]), ids[i]);
  for (int s = 0; s < 3; ++s)
    for (size_t u = batch.begin(s); u < batch.begin(s + 1); ++u)
      EXPECT_EQ(server_of(batch.unique()[u], 3), s);
  EXPECT_EQ(IdBatch({}, 2).unique().size(), 0u);
}

}  // namespace
}  // namespace fleetx::ps
