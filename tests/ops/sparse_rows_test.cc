#include "fleetx/ops/lib/sparse_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "fleetx/base/rng.h"
#include "fleetx/ir/program.h"

namespace fleetx::ops {
namespace {

using Rows = std::map<int64_t, std::vector<float>>;

// MergeRows needs a Prepare to book its scratch; any op will do.
struct Merged {
  Merged(const std::vector<int64_t>& ids, const std::vector<float>& values, int64_t width) {
    const auto capacity = static_cast<int64_t>(ids.size()) + 3;
    const kernel::Desc sparse{f32, {1 << 20, width}, {}, ir::VarKind::kSparseRows, capacity};
    std::vector<char> memory(sparse.bytes() + kAlignment);
    const auto rows = kernel::SparseRows::at(memory.data(), capacity);
    *rows.count = static_cast<int64_t>(ids.size());
    std::copy(ids.begin(), ids.end(), rows.ids);
    std::copy(values.begin(), values.end(), rows.values);

    ir::Op op;
    const kernel::Setting setting;
    kernel::Prepare p(op, {}, {}, setting);
    const MergeRows merge(p, capacity, width);
    std::vector<Buffer> scratch;
    std::vector<void*> pointers;
    for (const size_t bytes : p.scratch_bytes()) {
      scratch.push_back(Buffer::allocate(bytes));
      pointers.push_back(scratch.back().data());
    }
    std::mutex mutex;
    merge.for_each(kernel::Run(pointers.data()), rows, [&](int part, int64_t id, const float* row) {
      const std::lock_guard lock(mutex);
      EXPECT_LT(part, num_threads());
      const bool is_new = sums.emplace(id, std::vector<float>(row, row + width)).second;
      EXPECT_TRUE(is_new) << "id " << id << " came twice";
    });
  }
  Rows sums;
};

Rows reference(const std::vector<int64_t>& ids, const std::vector<float>& values, int64_t width) {
  Rows out;
  for (size_t i = 0; i < ids.size(); ++i) {
    const float* row = values.data() + static_cast<int64_t>(i) * width;
    const auto [it, is_new] = out.emplace(ids[i], std::vector<float>(row, row + width));
    for (int64_t j = 0; !is_new && j < width; ++j) it->second[static_cast<size_t>(j)] += row[j];
  }
  return out;
}

std::vector<float> noise(int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  const Philox random(7, 1);
  for (size_t i = 0; i < out.size(); ++i) out[i] = random.uniform(i) - 0.5f;
  return out;
}

TEST(MergeRows, AddsRepeatedIds) {
  const Merged m({5, 2, 5, 9}, {1, 2, 10, 20, 100, 200, 7, 8}, 2);
  EXPECT_EQ(m.sums, (Rows{{2, {10, 20}}, {5, {101, 202}}, {9, {7, 8}}}));
}

TEST(MergeRows, NothingToDo) { EXPECT_TRUE(Merged({}, {}, 4).sums.empty()); }

// Exact equality: the order of additions is fixed, whatever the threads do.
TEST(MergeRows, KeepsTheOrderOfAdditions) {
  for (const int64_t distinct : {int64_t{1}, int64_t{40}, int64_t{1} << 40}) {
    const int64_t n = 3000, width = 33;
    std::vector<int64_t> ids(n);
    const Philox random(3, 2);
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<int64_t>(mix(random.bits(i), i) % static_cast<uint64_t>(distinct));
    const auto values = noise(n * width);
    EXPECT_EQ(Merged(ids, values, width).sums, reference(ids, values, width)) << distinct;
  }
}

TEST(AddRows, KeepsTheOrderOfAdditions) {
  const int64_t n = 2000, width = 40, rows = 17;
  std::vector<int64_t> ids(n);
  for (int64_t i = 0; i < n; ++i) ids[static_cast<size_t>(i)] = i * i % rows;
  const auto values = noise(n * width);
  std::vector<float> got(rows * width), want(rows * width);
  add_rows([&](int64_t i) { return ids[static_cast<size_t>(i)]; }, n, width, values.data(),
           got.data());
  for (int64_t i = 0; i < n * width; ++i)
    want[static_cast<size_t>(ids[static_cast<size_t>(i / width)] * width + i % width)] +=
        values[static_cast<size_t>(i)];
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace fleetx::ops
