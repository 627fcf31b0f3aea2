#include "fleetx/train/placed_state.h"

#include <gtest/gtest.h>

#include "fleetx/ir/rewriter.h"
#include "fleetx/runtime/scope.h"
#include "fleetx/train/checkpoint.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/workers.h"

namespace fleetx::train {
namespace {

using ir::Placement;
using Resize = ir::Placement::Resize;
using testing::run_workers;
using testing::SharedGroups;
using Floats = std::vector<float>;

ir::VarInfo state(const std::string& name, Shape shape, Placement placement, DType dtype = f32) {
  ir::VarInfo v;
  v.name = name;
  v.type.dtype = dtype;
  v.type.shape = std::move(shape);
  v.persistable = true;
  v.placement = std::move(placement);
  return v;
}

Floats values(const Tensor& t) { return {t.data<float>().begin(), t.data<float>().end()}; }

TEST(PlacedState, PartsOfAllRanksMakeTheWhole) {
  run_workers(3, [](int rank, const SharedGroups& groups) {
    const auto r = static_cast<float>(rank);
    const Tensor own = Tensor::of<float>({2, 2}, {r, r + 0.1f, r + 0.2f, r + 0.3f});
    const Tensor rows = to_whole(state("w", {2, 2}, Placement::sharded("dp", 0)), own, *groups);
    const Tensor columns = to_whole(state("w", {2, 2}, Placement::sharded("dp", 1)), own, *groups);
    const Tensor stack =
        to_whole(state("e", {2, 2}, Placement::per_rank("dp", Resize::kSum)), own, *groups);
    if (rank != 0) return;
    EXPECT_EQ(rows.shape(), Shape({6, 2}));
    EXPECT_EQ(values(rows)[4], 1.0f);
    EXPECT_EQ(columns.shape(), Shape({2, 6}));
    EXPECT_EQ(values(columns),
              (Floats{0, 0.1f, 1, 1.1f, 2, 2.1f, 0.2f, 0.3f, 1.2f, 1.3f, 2.2f, 2.3f}));
    EXPECT_EQ(stack.shape(), Shape({3, 2, 2}));
  });
}

TEST(PlacedState, EachRankGetsItsPartBack) {
  run_workers(2, [](int rank, const SharedGroups& groups) {
    const Tensor whole = Tensor::of<float>({4}, {0, 1, 2, 3});
    const Tensor part =
        from_whole(state("w", {2}, Placement::sharded("dp", 0)), whole, {}, *groups, "f");
    EXPECT_EQ(values(part), rank == 0 ? (Floats{0, 1}) : (Floats{2, 3}));
    const Tensor stack = Tensor::of<float>({2, 2}, {0, 1, 2, 3});
    const auto residual = state("e", {2}, Placement::per_rank("dp", Resize::kSum));
    EXPECT_EQ(values(from_whole(residual, stack, Resize::kSum, *groups, "f")),
              rank == 0 ? (Floats{0, 1}) : (Floats{2, 3}));
  });
}

TEST(PlacedState, WhatARankOwnsIsSavedLikeReplicatedState) {
  for (const int owner : {0, 2})
    run_workers(3, [&](int rank, const SharedGroups& groups) {
      const ir::VarInfo var = state("m", {2}, ir::Placement::owned("dp", owner));
      const Tensor value = Tensor::of<float>({2}, {4, 5});
      const Tensor whole = to_whole(var, rank == owner ? value : Tensor(), *groups);
      if (rank == 0) {
        EXPECT_EQ(values(whole), (Floats{4, 5}));
      }
      const Tensor back = from_whole(var, value, {}, *groups, "f");
      EXPECT_EQ(back.defined(), rank == owner);
      // Each value of another job, of which they are the sum.
      const Tensor stack = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
      const Tensor sum = from_whole(var, stack, Resize::kSum, *groups, "f");
      ASSERT_EQ(sum.defined(), rank == owner);
      if (rank == owner) {
        EXPECT_EQ(values(sum), (Floats{4, 6}));
      }
    });
  // Alone, a process has all.
  const ir::VarInfo var = state("m", {1}, ir::Placement::owned("dp", 0));
  EXPECT_EQ(values(to_whole(var, Tensor::of<float>({1}, {3}), {})), Floats{3});
}

TEST(PlacedState, AnotherNumberOfRanksFollowsTheRule) {
  const Tensor stack = Tensor::of<float>({3, 1}, {1, 2, 6});
  const Tensor counts = Tensor::of<int64_t>({3, 1}, {1, 2, 6});
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    const auto load = [&](Resize rule) {
      return from_whole(state("e", {1}, Placement::per_rank("dp", rule)), stack, rule, *groups,
                        "f");
    };
    EXPECT_EQ(values(load(Resize::kAverage)), Floats{3});
    EXPECT_EQ(values(load(Resize::kSum)), Floats{4.5f});  // the sum stays 9
    EXPECT_FALSE(load(Resize::kReset).defined());
    // Whole numbers cannot be divided: one rank has them all.
    const Tensor own = from_whole(state("n", {1}, Placement::per_rank("dp", Resize::kSum), i64),
                                  counts, Resize::kSum, *groups, "f");
    EXPECT_EQ(own.item<int64_t>(), rank == 0 ? 9 : 0);
    // One worker's value, saved without a stack, reaches two.
    const Tensor one = Tensor::of<float>({1}, {8});
    EXPECT_EQ(values(from_whole(state("e", {1}, Placement::per_rank("dp", Resize::kSum)), one, {},
                                *groups, "f")),
              Floats{4});
  });
  // A job of one worker keeps no value per rank.
  EXPECT_EQ(values(from_whole(state("m", {1}, {}), stack, Resize::kAverage, {}, "f")), Floats{3});
  EXPECT_EQ(values(from_whole(state("m", {1}, {}), stack, Resize::kSum, {}, "f")), Floats{9});
}

TEST(PlacedState, WhatDoesNotFitIsNamed) {
  const Tensor whole = Tensor::of<float>({5}, {0, 1, 2, 3, 4});
  run_workers(2, [&](int, const SharedGroups& groups) {
    testing::expect_error(
        Error::Kind::kInvalidArgument, {"ckpt", "'w'", "f32[5]", "sharded(dp, 0)", "f32[4]"}, [&] {
          from_whole(state("w", {2}, Placement::sharded("dp", 0)), whole, {}, *groups, "ckpt");
        });
  });
}

ir::Program keeps(const std::vector<ir::VarInfo>& vars) {
  ir::Program p;
  ir::Rewriter rw(p);
  for (const ir::VarInfo& v : vars) rw.add_var(v);
  return p;
}

TEST(PlacedState, CheckpointsFollowIt) {
  const testing::TempDir dir;
  const std::string run = dir / "run";
  const auto program = [](bool parallel) {
    return keeps(
        {state("same", {1}, {}),
         state("error", {1}, parallel ? Placement::per_rank("dp", Resize::kSum) : Placement()),
         state("fresh", {1}, Placement::transient())});
  };
  std::string path;
  run_workers(2, [&](int rank, const SharedGroups& groups) {
    runtime::Scope scope;
    scope.set("same", Tensor::of<float>({1}, {7}));
    scope.set("error", Tensor::of<float>({1}, {static_cast<float>(rank + 1)}));
    scope.set("fresh", Tensor::of<float>({1}, {5}));
    const ir::Program main = program(true);
    const std::string at = save_checkpoint(run, scope, {{"main", &main}},
                                           State{.step = 1, .position = {}, .seed = 0, .texts = {}},
                                           {.writes = rank == 0, .groups = groups});
    groups->at("dp").barrier();
    if (rank == 0) path = at;
  });
  for (const int workers : {1, 2, 4}) {
    run_workers(workers, [&](int rank, const SharedGroups& groups) {
      runtime::Scope scope;
      scope.set("fresh", Tensor::of<float>({1}, {1}));  // as startup made it
      const ir::Program main = program(workers > 1);
      load_checkpoint(path, scope, {{"main", &main}}, groups);
      const float error = scope.get("error").item<float>();
      EXPECT_EQ(error,
                workers == 2 ? static_cast<float>(rank + 1) : 3.0f / static_cast<float>(workers));
      EXPECT_EQ(scope.get("same").item<float>(), 7);
      EXPECT_EQ(scope.get("fresh").item<float>(), 1);
    });
  }
  const ir::Program more = keeps({state("same", {1}, {}), state("missing", {3}, {})});
  runtime::Scope scope;
  testing::expect_error(Error::Kind::kInvalidArgument, {path, "no variable 'missing'", "f32[3]"},
                        [&] {
                          load_checkpoint(path, scope, {{"main", &more}});
                        });
  EXPECT_FALSE(scope.has("same"));  // nothing was half loaded
}

}  // namespace
}  // namespace fleetx::train
