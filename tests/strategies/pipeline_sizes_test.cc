// Sizes of values in a micro-batch, and programs that are built for one size of the batch.
#include "fleetx/strategies/pipeline_sizes.h"

#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/mesh_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing::pipeline_sizes_test {
namespace {

using ir::Builder;
using ir::Var;
using strategies::BatchSizes;
using strategies::RowSizes;

bool is_data(const ir::VarInfo& v) { return v.is_data; }

TEST(PipelineSizes, FollowFromTheRowsOfTheData) {
  const ir::Program main = ir::parse_text(R"(program
data x : f32[-1,4]
var h : f32[-1,2]
var n : f32[1]

forward:
h = reshape(x) {shape=[-1,2]}
n = mean(h)
)");
  const BatchSizes sizes(main, is_data, 4);
  const RowSizes h = sizes.of("h"), n = sizes.of("n");
  EXPECT_EQ(h.like, "x");
  EXPECT_EQ(h.fixed, Shape({0, 2}));
  EXPECT_EQ(h.per_row, (ir::Ints{2, 0}));
  EXPECT_EQ(n.fixed, Shape({1}));
  EXPECT_EQ(n.per_row, (ir::Ints{0}));
}

TEST(PipelineSizes, OtherUnknownSizesAreRefused) {
  const ir::Program main = ir::parse_text(R"(program
data x : f32[-1,-1]
var h : f32[-1,-1]

forward:
h = scale(x)
)");
  expect_error(Error::Kind::kInvalidArgument, {"'h' goes to another stage, but its dimension 1"},
               [&] { (void)BatchSizes(main, is_data, 2).of("h"); });
}

// ---- a batch that is written into the program ----

// `rows` 0: no layer names a size.
std::function<Var(Builder&, int)> built_for(int64_t batch, int64_t rows) {
  return [=](Builder& b, int) {
    const Var x = b.data("x", f32, {batch, 12}), y = b.data("y", i64, {batch, 1});
    Var h = nn::fc(x, {.size = 12, .act = "tanh"});
    if (rows != 0) h = nn::reshape(h, {rows, 12});
    return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
  };
}

TEST(PipelineSizes, AWrittenBatchIsCut) {
  MeshJob job{.net = built_for(-1, 0)};
  const MeshResult one = train(job);
  job.net = built_for(24, 0);
  expect_equal(train(job), one, 1e-6, "one worker");
  job.pp = 2;
  expect_equal(train(job), one, 1e-6, "two stages");
}

TEST(PipelineSizes, LayersThatNameTheBatchAreRefused) {
  // The gradient of a reshape to -1 names it, too.
  for (const int64_t rows : {24, -1})
    for (const int stages : {1, 2})
      for (int rank = 0; rank < stages; ++rank)
        expect_error(Error::Kind::kInvalidArgument,
                     {"does not work with one of 4 micro-batches of it: ", "reshape",
                      "declare the data with a first size of -1"},
                     [&] { MeshWorker({.pp = stages, .net = built_for(24, rows)}, rank); });
  MeshWorker({.pp = 2, .net = built_for(-1, -1)}, 0);
}

TEST(PipelineSizes, ABatchThatIsNotMicroBatchesIsRefused) {
  expect_error(Error::Kind::kInvalidArgument,
               {"the data are declared with a batch of 22, which is not 4 micro-batches"},
               [&] { MeshWorker({.pp = 2, .net = built_for(22, 0)}, 0); });
  expect_error(Error::Kind::kInvalidArgument, {"24, which is not 4 micro-batches of 8"},
               [] { strategies::check_parts(24, 4, 8); });
}

}  // namespace
}  // namespace fleetx::testing::pipeline_sizes_test
