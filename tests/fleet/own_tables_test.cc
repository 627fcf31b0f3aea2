#include "fleetx/fleet/own_tables.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::fleet {
namespace {

using testing::expect_error;

// value -= lr * g / step, with a state that counts the row's updates.
class Fading final : public ps::UpdateRule {
 public:
  std::string text() const override { return "fading"; }
  std::vector<float> states() const override { return {0}; }
  std::vector<float> scalars() const override { return {1}; }
  void update(const Batch& b) const override {
    for (size_t r = 0; r < b.records.size(); ++r)
      for (int64_t i = 0; i < b.width; ++i) {
        b.records[r][i] -= b.lr * b.gradients[r][i] / b.scalars[0];
        b.records[r][b.width + i] += 1;
      }
  }
  void advance(std::span<float> scalars) const override { scalars[0] += 1; }
};

ps::JobSpec two_tables() {
  ps::JobSpec job;
  for (const char* name : {"a", "b"})
    job.sparse.push_back({.name = name,
                          .dim = 2,
                          .rule = std::make_shared<Fading>(),
                          .initializer = {.kind = ps::Initializer::Kind::kConstant, .a = 0.5f}});
  return job;
}

std::vector<float> pull(OwnTables& tables, int table, const std::vector<int64_t>& ids,
                        bool make = true) {
  std::vector<float> rows(ids.size() * 2);
  const kernel::Servers::Lookup lookup{table, ids.data(), std::ssize(ids), rows.data()};
  tables.pull_rows({&lookup, 1}, make);
  return rows;
}

void push(OwnTables& tables, int table, const std::vector<int64_t>& ids,
          const std::vector<float>& values, float lr, float scale) {
  const kernel::Servers::RowGradient gradient{table,         ids.data(), std::ssize(ids),
                                              values.data(), lr,         scale};
  tables.push({}, {&gradient, 1});
}

TEST(OwnTables, KeepRowsOfAnyId) {
  OwnTables tables(two_tables());
  const int a = tables.table("a"), b = tables.table("b");
  constexpr int64_t kFar = int64_t{1} << 62;
  EXPECT_EQ(pull(tables, a, {kFar, 3}, false), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(pull(tables, a, {kFar, 3, kFar}), std::vector<float>(6, 0.5f));
  // Equal ids are summed, then it is one update; against the formula.
  std::map<int64_t, std::pair<float, float>> expected{{kFar, {0.5f, 0.5f}}, {3, {0.5f, 0.5f}}};
  for (int step = 1; step <= 3; ++step) {
    push(tables, a, {kFar, 3, kFar}, {1, 2, 3, 4, 5, 6}, 0.25f, 2);
    expected[kFar].first -= 0.25f * 2 * (1 + 5) / static_cast<float>(step);
    expected[kFar].second -= 0.25f * 2 * (2 + 6) / static_cast<float>(step);
    expected[3].first -= 0.25f * 2 * 3 / static_cast<float>(step);
    expected[3].second -= 0.25f * 2 * 4 / static_cast<float>(step);
  }
  const std::vector<float> rows = pull(tables, a, {kFar, 3});
  const float wanted[] = {expected[kFar].first, expected[kFar].second, expected[3].first,
                          expected[3].second};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(rows[i], wanted[i], 1e-5);
  EXPECT_EQ(pull(tables, b, {kFar}), std::vector<float>(2, 0.5f));

  testing::TempDir folder;
  runtime::Scope scope;
  tables.save(scope, folder.path());
  push(tables, a, {3}, {9, 9}, 1, 1);
  OwnTables other(two_tables());
  pull(other, a, {7});
  other.load(folder.path());
  EXPECT_EQ(pull(other, a, {7}, false), (std::vector<float>{0, 0}));
  EXPECT_EQ(pull(other, a, {kFar, 3}), rows);
  push(other, a, {3}, {9, 9}, 1, 1);  // the optimizer's state too
  EXPECT_EQ(pull(other, a, {kFar, 3}), pull(tables, a, {kFar, 3}));
  EXPECT_EQ(other.shrink(100), 3);
  EXPECT_EQ(pull(other, a, {3}, false), (std::vector<float>{0, 0}));
}

TEST(OwnTables, BadCallsAreNamed) {
  OwnTables tables(two_tables());
  expect_error(Error::Kind::kInvalidArgument, {"'c'", "another minimize"},
               [&] { tables.table("c"); });
  expect_error(Error::Kind::kInvalidArgument, {"'b'", "id -4 is negative"}, [&] {
    pull(tables, 1, {1, -4});
  });
}

}  // namespace
}  // namespace fleetx::fleet
