#include "fleetx/ps/slicing.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace fleetx::ps {
namespace {

std::vector<int64_t> sizes(const Shape& shape, int servers) {
  std::vector<int64_t> out;
  for (const Block& b : slice({{"w", shape}}, servers, {})) out.push_back(b.size());
  return out;
}

TEST(Slicing, CutsAsTheOriginal) {
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes({10000}, 2), Sizes{10000});
  EXPECT_EQ(sizes({16383}, 2), Sizes{16383});
  EXPECT_EQ(sizes({16384}, 2), (Sizes{8192, 8192}));
  EXPECT_EQ(sizes({1000, 1000}, 2), (Sizes{500'000, 500'000}));
  EXPECT_EQ(sizes({100, 1000}, 3), (Sizes{34'000, 34'000, 32'000}));
  EXPECT_EQ(sizes({3, 10000}, 2), (Sizes{20'000, 10'000}));
  EXPECT_EQ(sizes({1, 100000}, 4), Sizes{100'000});
  EXPECT_EQ(sizes({30000}, 8), (Sizes{10'000, 10'000, 10'000}));
  EXPECT_EQ(sizes({17, 1024}, 4), (Sizes{9 * 1024, 8 * 1024}));
  EXPECT_EQ(sizes({}, 4), Sizes{1});
  EXPECT_EQ(sizes({0, 5}, 4), Sizes{0});
}

TEST(Slicing, NamesAndDealsOut) {
  const std::vector<NamedShape> params{{"a", {16384}}, {"b", {10}}, {"c", {20}}};
  const auto blocks = slice(params, 3, {});
  ASSERT_EQ(blocks.size(), 4u);
  const char* names[] = {"a.block0", "a.block1", "b", "c"};
  const int servers[] = {0, 1, 2, 0};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(blocks[i].name, names[i]);
    EXPECT_EQ(blocks[i].server, servers[i]);
  }
  EXPECT_EQ(blocks[1].begin, 8192);
  EXPECT_EQ(blocks[1].end, 16384);
}

TEST(Slicing, KeepsParametersWhole) {
  EXPECT_EQ(slice({{"a", {1000, 1000}}}, 2, {.slice_var_up = false}).size(), 1u);
}

// The hash must not change: a job may have servers of another build.
TEST(Slicing, HashOfNamesIsStable) {
  const auto blocks = slice({{"fc_0.w_0", {10}}, {"fc_0.b_0", {10}}, {"emb", {10}}}, 7,
                            {.dispatch = Dispatch::kHashName});
  EXPECT_EQ(blocks[0].server, static_cast<int>(14254779208100563361ull % 7));
  EXPECT_EQ(blocks[1].server, static_cast<int>(7421484864876020666ull % 7));
  EXPECT_EQ(blocks[2].server, static_cast<int>(14045626733740132655ull % 7));
}

TEST(Slicing, RefusesWhatIsNotKnown) {
  using testing::expect_error;
  const auto bad = Error::Kind::kInvalidArgument;
  expect_error(bad, {"'w'", "[-1,3]"}, [] { slice({{"w", {-1, 3}}}, 2, {}); });
  expect_error(bad, {"0 servers"}, [] { slice({}, 0, {}); });
  expect_error(bad, {"min_block_size"}, [] { slice({}, 1, {.min_block_size = 0}); });
}

}  // namespace
}  // namespace fleetx::ps
