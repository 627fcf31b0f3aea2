#include "fleetx/nn/embedding.h"

#include "tests/nn/net.h"

namespace fleetx::testing {
namespace {

TEST(Embedding, AddsADimension) {
  Net net;
  const Var ids = net.b.data("ids", i64, {-1, 26});
  const Var rows = nn::embedding(ids, {.rows = 1000, .dim = 8, .sparse = true});
  EXPECT_EQ(rows.shape(), (Shape{-1, 26, 8}));
  EXPECT_EQ(net.main.var("embedding_0.w_0").type.shape, (Shape{1000, 8}));
  EXPECT_TRUE(net.last().attr<bool>("sparse"));
  EXPECT_TRUE(contains(error_of([&] { nn::embedding(ids, {.rows = 10}); }), "must be positive"));
}

TEST(Embedding, PoolsSequences) {
  Net net;
  const Var ids = net.b.data("ids", i64, {-1});
  const Var offsets = net.b.data("offsets", i64, {9});
  const Var rows = nn::embedding(ids, {.rows = 1000, .dim = 8});
  EXPECT_EQ(nn::sequence_pool(rows, offsets, "mean").shape(), (Shape{8, 8}));
  EXPECT_EQ(net.last().attr<std::string>("type"), "mean");
}

}  // namespace
}  // namespace fleetx::testing
