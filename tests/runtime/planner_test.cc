// The planner on program texts: layouts, reorders, in-place, lives, buckets, bytes, errors.
#include "fleetx/runtime/planner.h"

#include <gtest/gtest.h>

#include "fleetx/base/cpu.h"
#include "fleetx/ir/text.h"
#include "fleetx/runtime/bind.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/sample_program.h"
#include "tests/support/workers.h"

namespace fleetx::runtime {
namespace {

using testing::error_of;

// The fusing passes would leave nothing to look at.
const std::set<std::string> kNoFusions{"fuse_elementwise", "fuse_fc", "fuse_optimizer"};

PlannedProgram plan_text(const std::string& text, const ir::Names& fetch,
                         const PlanOptions& options = {.skip = kNoFusions}) {
  const ir::Program program = ir::parse_text(text);
  FeedTypes feeds;
  for (const ir::VarInfo* v : program.vars())
    if (v->is_data) feeds.emplace_back(v->name, v->type);
  return plan_program(program, feeds, fetch, options);
}

std::vector<std::string> labels(const PlannedProgram& plan) {
  std::vector<std::string> out;
  for (const Step& step : plan.steps) out.push_back(step.label);
  return out;
}

// The first value of a variable: its main one.
int value_of(const PlannedProgram& plan, const std::string& var) {
  for (size_t i = 0; i < plan.values.size(); ++i)
    if (plan.values[i].var == var) return static_cast<int>(i);
  ADD_FAILURE() << "no value of '" << var << "'";
  return 0;
}
int storage_of(const PlannedProgram& plan, const std::string& var) {
  return plan.value(value_of(plan, var)).storage;
}
const Block& block_of(const PlannedProgram& plan, const std::string& var) {
  return plan.storage(storage_of(plan, var)).block;
}
bool is_blocked(const PlannedProgram& plan, const std::string& var) {
  return !plan.value(value_of(plan, var)).desc.layout.is_plain();
}

// ---- layouts ----

const char* const kConvolutions = R"(program
data x : f32[2,3,14,14]
param w1 : f32[32,3,3,3]
param w2 : f32[32,32,3,3]
param w3 : f32[32,10]
var a : f32[2,32,12,12]
var b : f32[2,32,10,10]
var c : f32[2,32,1,1]
var d : f32[2,32]
var e : f32[2,10]

forward:
a = conv2d(x, w1, _)
b = conv2d(a, w2, _)
c = pool2d(b) {type="avg", global=true}
d = reshape(c) {shape=[2, 32]}
e = fc(d, w3, _)
)";

TEST(Planner, LayoutsFlowFromKernelToKernel) {
  if (cpu::best_isa() < cpu::Isa::kAvx2) GTEST_SKIP() << "nothing is blocked without AVX2";
  const PlannedProgram plan = plan_text(kConvolutions, {"e"});
  for (const char* var : {"a", "b"}) EXPECT_TRUE(is_blocked(plan, var)) << var;
  EXPECT_FALSE(is_blocked(plan, "e"));
  EXPECT_TRUE(is_blocked(plan, "w2")) << "parameters move into the layout of their reader";
  // No reorder between the convolutions; at most one where the row-major part begins.
  EXPECT_LE(plan.reorders(), 1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].label == "reorder") {
      EXPECT_GE(i, 2u) << plan.steps[i].description;
    }
  }
}

TEST(Planner, WithoutTheLayoutPhaseAllIsRowMajor) {
  const PlannedProgram plan = plan_text(kConvolutions, {"e"}, {.skip = {"layout"}});
  for (const Value& v : plan.values) EXPECT_TRUE(v.desc.layout.is_plain()) << v.var;
  EXPECT_EQ(plan.reorders(), 0);
}

TEST(Planner, AVariableInABlockedLayoutStaysThereAndIsReordered) {
  const char* const text = R"(program
state s : f32[4,16]
var y : f32[4,16]

forward:
y = softmax(s)
)";
  Scope scope;
  const Layout transposed{{1, 0}, {}};
  scope.replace("s", Tensor(f32, {4, 16}, transposed));
  const PlannedProgram plan = plan_text(text, {"y"}, {.scope = &scope});
  EXPECT_EQ(labels(plan), (std::vector<std::string>{"reorder", "softmax"}));
  EXPECT_EQ(plan.value(value_of(plan, "s")).desc.layout, transposed);
  EXPECT_EQ(plan.reorders(), 1);
  EXPECT_EQ(plan_text(text, {"y"}).reorders(), 0);  // without a scope: as startup makes it
}

// ---- in place, lives ----

const char* const kChain = R"(program
data x : f32[64]
var a : f32[64]
var b : f32[64]
var c : f32[64]
var d : f32[8,8]
var e : f32[64]

forward:
a = softmax(x)
b = relu(a)
c = relu(b)
d = reshape(b) {shape=[8, 8]}
e = elementwise_add(c, b)
)";

TEST(Planner, AnOutputTakesOverAnInputThatDies) {
  const PlannedProgram plan = plan_text(kChain, {"d", "e"});
  EXPECT_NE(storage_of(plan, "a"), storage_of(plan, "x")) << "the feed is the user's";
  EXPECT_EQ(storage_of(plan, "b"), storage_of(plan, "a"));
  EXPECT_NE(storage_of(plan, "c"), storage_of(plan, "b")) << "b is read again";
  EXPECT_EQ(storage_of(plan, "d"), storage_of(plan, "b")) << "a view shares although b lives on";
  EXPECT_EQ(storage_of(plan, "e"), storage_of(plan, "c"));
  EXPECT_EQ(plan.live_bytes, 512u);
}

TEST(Planner, WithoutTheInplacePhaseEveryValueHasItsOwnMemory) {
  std::set<std::string> skip = kNoFusions;
  skip.insert("inplace");
  const PlannedProgram plan = plan_text(kChain, {"d", "e"}, {.skip = skip});
  std::set<int> storages;
  for (const Value& v : plan.values) EXPECT_TRUE(storages.insert(v.storage).second) << v.var;
}

TEST(Planner, AValueLivesFromItsWriterToItsLastReader) {
  std::set<std::string> skip = kNoFusions;
  skip.insert("inplace");
  const PlannedProgram plan = plan_text(kChain, {"e"}, {.skip = skip});
  EXPECT_EQ(labels(plan), (std::vector<std::string>{"softmax", "relu", "relu", "elementwise_add"}));
  const auto life = [&](const char* var) {
    return std::pair(block_of(plan, var).first, block_of(plan, var).last);
  };
  EXPECT_EQ(life("a"), std::pair(0, 1));
  EXPECT_EQ(life("b"), std::pair(1, 3));
  EXPECT_EQ(life("c"), std::pair(2, 3));
  EXPECT_EQ(life("e"), std::pair(3, 4)) << "what is fetched lives to the end";
  // Two values that live together do not overlap.
  for (const auto& [one, other] : {std::pair("a", "b"), {"b", "c"}, {"b", "e"}, {"c", "e"}})
    EXPECT_TRUE(block_of(plan, one).offset + 256 <= block_of(plan, other).offset ||
                block_of(plan, other).offset + 256 <= block_of(plan, one).offset)
        << one << " and " << other;
}

TEST(Planner, MemoryByKindAddsUpToThePeak) {
  testing::SampleProgram s;
  const FeedTypes feeds{{"x", {f32, {64, 4}}}, {"label", {i64, {64, 1}}}};
  const PlannedProgram plan = plan_program(s.main, feeds, {"loss"});
  const MemoryByKind m = plan.memory();
  EXPECT_EQ(m.total(), plan.peak_bytes());
  EXPECT_EQ(m.parameters, 4u * (4 * 8 + 8 + 8 * 3 + 3));
  EXPECT_EQ(m.state, 0u);
  EXPECT_GT(m.activations, 0u);
  EXPECT_EQ(m.fetched, 4u);
}

// ---- groups: buckets and bytes on the wire ----

const char* const kAverage = R"(program
data x : f32[3,5]
data y : f32[100]
var a : f32[3,5]
var b : f32[100]
var t : i64[16]

forward:
a = scale(x)
b = scale(y)
[a, b], t = all_reduce_start([a, b], _) {group="dp", op="average"} @ "net.cc":9
[a, b] = all_reduce_wait([a, b], t) {group="dp", op="average"}
)";

PlanOptions on_mesh(int size, int rank = 0) {
  PlanOptions options{.skip = kNoFusions};
  options.mesh = Mesh({{"dp", size}}, rank);
  return options;
}

TEST(Planner, GradientsOfACallLieNextToEachOther) {
  const PlannedProgram plan = plan_text(kAverage, {"a", "b"}, on_mesh(64));
  ASSERT_EQ(plan.buckets.size(), 1u);
  EXPECT_EQ(plan.buckets[0].group, "dp");
  for (const char* var : {"a", "b"})
    EXPECT_EQ(plan.storage(storage_of(plan, var)).region, Region::kBucket) << var;
  EXPECT_EQ(block_of(plan, "a").offset, 0u);
  EXPECT_EQ(block_of(plan, "b").offset, 64u);
  EXPECT_GE(plan.buckets[0].bytes, 64u + 448u);
  EXPECT_EQ(plan.memory().buckets, plan.bucket_bytes());
}

TEST(Planner, WhatTravelsIsKnownForEveryRankOfEveryMesh) {
  const double bytes = 4 * (15 + 100);
  for (const int ranks : {1, 2, 64, 4096}) {
    const double want = bytes * 2 * (ranks - 1) / ranks;
    for (const int rank : {0, ranks - 1}) {
      const PlannedProgram plan = plan_text(kAverage, {"a"}, on_mesh(ranks, rank));
      const auto traffic = plan.traffic();
      ASSERT_TRUE(traffic.contains("dp"));
      EXPECT_EQ(traffic.at("dp").ranks, ranks);
      EXPECT_EQ(traffic.at("dp").calls, 1);
      EXPECT_DOUBLE_EQ(traffic.at("dp").bytes, want);
    }
  }
  const std::string table = plan_text(kAverage, {"a"}, on_mesh(64)).table();
  EXPECT_TRUE(testing::contains(table, "wire: group dp of 64 ranks"));
  EXPECT_TRUE(testing::contains(table, "wire MB"));
}

TEST(Planner, EveryKindOfCallHasItsShareOfTheWire) {
  using ir::CommKind;
  const auto sent = [](CommKind kind, int ranks) {
    return ir::wire_bytes({kind, "dp", 1200.0}, ranks);
  };
  EXPECT_DOUBLE_EQ(sent(CommKind::kAllReduce, 4), 1800);
  EXPECT_DOUBLE_EQ(sent(CommKind::kReduceScatter, 4), 900);
  EXPECT_DOUBLE_EQ(sent(CommKind::kAllToAll, 4), 900);
  EXPECT_DOUBLE_EQ(sent(CommKind::kAllGather, 4), 3600);  // 3/4 of the 4,800 bytes of all
  EXPECT_DOUBLE_EQ(sent(CommKind::kBroadcast, 4), 1200);
  EXPECT_DOUBLE_EQ(sent(CommKind::kSend, 4), 1200);
  EXPECT_DOUBLE_EQ(sent(CommKind::kReceive, 4), 0);
  EXPECT_DOUBLE_EQ(sent(CommKind::kAllReduce, 1), 0);
}

// strategies/pipeline_unroll.cc leaves such a variable without a value.
TEST(Planner, AFetchOfWhatOnlyMicroBatchesHaveSaysWhereItIs) {
  testing::expect_error(Error::Kind::kInvalidArgument,
                        {"fetch 'h'", "stage 1 of the pipeline", "'h@MB0'"}, [] {
                          plan_text(R"(program
data x : f32[4]
var h : f32[4] {stage=1}
var h@MB0 : f32[4]

forward:
h@MB0 = scale(x)
)",
                                    {"h"});
                        });
}

TEST(Planner, AnUnknownGroupIsNamedWithTheOp) {
  testing::expect_error(Error::Kind::kInvalidArgument, {"net.cc:9", "all_reduce_start", "'dp'"},
                        [] { (void)plan_text(kAverage, {"a"}); });
}

// ---- errors, binding ----

TEST(Planner, APlacementAlongAnAxisThatTheMeshLacksIsNamed) {
  const char* const text = R"(program
data x : f32[4]
state unread : f32[4] sharded(zz, 0)
var y : f32[4]

forward:
y = relu(x)
)";
  EXPECT_TRUE(error_of([&] { (void)plan_text(text, {"y"}, on_mesh(2)); })
                  .starts_with("variable 'unread' is sharded(zz, 0), but the mesh has no axis "
                               "'zz'"));
  EXPECT_NO_THROW((void)plan_text(text, {"y"}));  // for any mesh
}

TEST(Planner, BadRequestsAreNamedBeforeAnythingIsPlanned) {
  const ir::Program program = ir::parse_text(kChain);
  const FeedTypes x{{"x", {f32, {64}}}};
  const auto error = [&](const FeedTypes& feeds, const ir::Names& fetch, PlanOptions o = {}) {
    return error_of([&] { (void)plan_program(program, feeds, fetch, o); });
  };
  EXPECT_EQ(error({}, {"e"}), "feed 'x' is missing: the program needs f32[64]");
  EXPECT_EQ(error({x[0], x[0]}, {"e"}), "feed 'x' is given twice");
  EXPECT_EQ(error({{"x", {f32, {63}}}}, {"e"}),
            "feed 'x': the program declares f32[64], got f32[63]");
  EXPECT_TRUE(error(x, {"f"}).starts_with("fetch 'f': the program has no such variable"));
  EXPECT_TRUE(error(x, {"e"}, {.skip = {"bucket"}}).starts_with("there is no pass 'bucket'"));
}

TEST(Planner, NeedsNoScopeAndBindsToOneLater) {
  testing::SampleProgram s;
  const Feeds feeds{{"x", testing::random({6, 4})}, {"label", testing::random_ints({6, 1}, 0, 3)}};
  const FeedTypes types{{"x", {f32, {6, 4}}}, {"label", {i64, {6, 1}}}};
  Scope scope;
  EXPECT_TRUE(
      testing::contains(error_of([&] {
                          bind(plan_program(s.main, types, {"loss"}), scope,
                               {.groups = std::make_shared<comm::Groups>()});
                        }),
                        "'fc_0.w_0' is not in the scope yet: run the startup program first"));
  Executor exe;
  exe.run(s.startup, scope);
  const uint64_t generation = scope.generation();
  PlannedProgram planned = plan_program(s.main, types, {"loss"});
  EXPECT_EQ(scope.generation(), generation) << "planning touches no scope";
  const auto plan = bind(std::move(planned), scope, {.groups = std::make_shared<comm::Groups>()});
  for (size_t i = 0; i < feeds.size(); ++i)
    plan->set_feed(static_cast<int>(i), feeds[i].second.raw());
  plan->run();
  EXPECT_FLOAT_EQ(plan->fetched(0).item<float>(),
                  exe.run(s.main, scope, feeds, {"loss"})[0].item<float>());
}

TEST(Planner, AScopeWithAnotherTypeIsAnErrorWhenBound) {
  testing::SampleProgram s;
  Scope scope;
  Executor exe;
  exe.run(s.startup, scope);
  scope.replace("fc_1.b_0", Tensor(f32, {4}));
  EXPECT_EQ(error_of([&] {
              exe.run(
                  s.main, scope,
                  {{"x", testing::random({6, 4})}, {"label", testing::random_ints({6, 1}, 0, 3)}},
                  {"loss"});
            }),
            "'fc_1.b_0' in the scope is f32[4], the program declares f32[3]");
}

TEST(Planner, APlanOfAnotherMeshDoesNotBind) {
  testing::run_workers(2, [](int rank, const testing::SharedGroups& groups) {
    Scope scope;
    EXPECT_NO_THROW(bind(plan_text(kAverage, {"a"}, on_mesh(2, rank)), scope, {.groups = groups}));
    testing::expect_error(
        Error::Kind::kInvalidArgument, {"all_reduce_start", "64 ranks", "has 2"},
        [&] { bind(plan_text(kAverage, {"a"}, on_mesh(64)), scope, {.groups = groups}); });
  });
}

}  // namespace
}  // namespace fleetx::runtime
