#include <gtest/gtest.h>

#include <set>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/runtime/planner.h"
#include "fleetx/strategies/owners.h"
#include "fleetx/tensor/safetensors.h"
#include "tests/strategies/worker.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::strategies::sharding_test {
namespace {

using testing::SharedGroups;
using testing::Worker;
using Lines = std::vector<std::string>;
using State = std::map<std::string, Tensor>;

// ---- program texts ----

constexpr const char* kText = R"(program
data x : f32[-1,4]
param w1 : f32[4,3]
param w2 : f32[3,1]
state v1 : f32[4,3]
state v2 : f32[3,1]
state lr : f32[1]
state @step@ : i64[1]
var h : f32[-1,3]
var y : f32[-1,1]
var loss : f32[1]
var dloss : f32[1]
var dy : f32[-1,1]
var dw2 : f32[3,1]
var dh : f32[-1,3]
var dw1 : f32[4,3]

forward:
h = fc(x, w1, _)
y = fc(h, w2, _)
loss = mean(y)

backward:
dloss = fill() {shape=[1], value=1.0}
dy = mean_grad(y, dloss)
dh, dw2, _ = fc_grad(h, w2, _, _, dy)
_, dw1, _ = fc_grad(x, w1, _, _, dh)

training:
loss(loss, dloss)
parameter(w2, dw2, _)
parameter(w1, dw1, _)
)";

constexpr const char* kStartup = R"(program
param w1 : f32[4,3]
param w2 : f32[3,1]
state v1 : f32[4,3]
state v2 : f32[3,1]

forward:
w1 = fill() {shape=[4,3], value=0.1}
w2 = fill() {shape=[3,1], value=0.5}
v1 = fill() {shape=[4,3]}
v2 = fill() {shape=[3,1]}
)";

Lines lines_of(const ir::Program& program, ir::Role role) {
  Lines lines;
  for (const ir::Op& op : program.ops())
    if (op.role == role) lines.push_back(ir::to_text(op));
  return lines;
}

// As an optimizer does it: what strategies have made of the gradients is applied.
void append_updates(ir::Program& main) {
  ir::Rewriter rw(main);
  const std::vector<ir::Training::Parameter> parameters = main.training().parameters;
  for (const ir::Training::Parameter& p : parameters) {
    const std::string v = "v" + p.name.substr(1);
    rw.append(
        {.type = "momentum",
         .inputs = {{"param", {p.name}}, {"grad", {p.gradient}}, {"velocity", {v}}, {"lr", {"lr"}}},
         .outputs = {{"param_out", {p.name}}, {"velocity_out", {v}}},
         .role = ir::Role::kUpdate});
  }
  rw.edit_training().step = "@step@";
  for (auto& p : rw.edit_training().parameters) p.learning_rate = "lr";
}

struct Texts {
  ir::Program main = ir::parse_text(kText), startup = ir::parse_text(kStartup);
};

Texts sharded(int rank, const ir::Attrs& options, int workers = 2) {
  Texts t;
  ResolvedStrategies resolved({{"data_parallel", {{"fuse", false}}}, {"sharding", options}},
                              {.mesh = Mesh({{"dp", workers}}, rank)});
  strategies::minimize(
      {t.main, t.startup}, resolved, [] {}, [&] { append_updates(t.main); });
  return t;
}

// w1 is larger, so worker 0 owns it.
TEST(Sharding, StageOneText) {
  const Texts t = sharded(0, {});
  EXPECT_EQ(
      lines_of(t.main, ir::Role::kUpdate),
      (Lines{"[w1], [v1] = momentum([w1], [dw1], [v1], lr, _)",
             R"([w1], broadcast_ticket = broadcast_start([w1], @step@) {group="dp"})",
             R"([w2], broadcast_ticket_1 = broadcast_start([w2], @step@) {group="dp", root=1})",
             R"([w1] = broadcast_wait([w1], broadcast_ticket) {group="dp"})",
             R"([w2] = broadcast_wait([w2], broadcast_ticket_1) {group="dp", root=1})"}));
  EXPECT_EQ(t.main.var("v1").placement, ir::Placement::owned("dp", 0));
  EXPECT_EQ(t.main.var("v2").placement, ir::Placement::owned("dp", 1));
  EXPECT_EQ(t.startup.find("v2"), nullptr);
  const Texts other = sharded(1, {});
  EXPECT_EQ(lines_of(other.main, ir::Role::kUpdate).front(),
            "[w2], [v2] = momentum([w2], [dw2], [v2], lr, _)");
  EXPECT_EQ(other.startup.find("v1"), nullptr);
}

TEST(Sharding, StageTwoText) {
  const Texts t = sharded(0, {{"stage", 2}, {"fuse", false}});
  EXPECT_EQ(
      lines_of(t.main, ir::Role::kBackward),
      (Lines{
          R"(dloss = assign("@worker_weight@"))", "dy = mean_grad(y, dloss)",
          "dh, dw2, _ = fc_grad(h, w2, _, _, dy)",
          R"([dw2@SENT], reduce_ticket = reduce_start([dw2], @step@) {group="dp", op="average", root=1})",
          "_, dw1, _ = fc_grad(x, w1, _, _, dh)",
          R"([dw1@SENT], reduce_ticket_1 = reduce_start([dw1], @step@) {group="dp", op="average"})",
          R"([dw2@OWN] = reduce_wait([dw2@SENT], reduce_ticket) {group="dp", op="average", root=1})",
          R"([dw1@OWN] = reduce_wait([dw1@SENT], reduce_ticket_1) {group="dp", op="average"})"}));
  EXPECT_EQ(lines_of(t.main, ir::Role::kUpdate).front(),
            R"([w1], [v1] = momentum([w1], [dw1@OWN], [v1], lr, _))");
}

// A segment for each layer.
TEST(Sharding, StageThreeText) {
  const Texts t = sharded(0, {{"stage", 3}, {"fuse", false}, {"segment_MB", 1e-6}});
  EXPECT_EQ(
      lines_of(t.main, ir::Role::kForward),
      (Lines{
          R"([w1@0@SENT], gather_ticket = broadcast_start([w1], _) {group="dp"})",
          R"(w2@EMPTY = empty() {shape=[3,1]})",
          R"([w2@1@SENT], gather_ticket_1 = broadcast_start([w2@EMPTY], _) {group="dp", root=1})",
          R"([w1@0] = broadcast_wait([w1@0@SENT], gather_ticket) {group="dp"})",
          R"(h = fc(x, w1@0, _))",
          R"([w2@1] = broadcast_wait([w2@1@SENT], gather_ticket_1) {group="dp", root=1})",
          R"(y = fc(h, w2@1, _))", "loss = mean(y)"}));
  EXPECT_EQ(lines_of(t.main, ir::Role::kUpdate),
            Lines{R"([w1], [v1] = momentum([w1], [dw1@OWN], [v1], lr, _))"});
  EXPECT_EQ(t.main.var("w2").placement, ir::Placement::owned("dp", 1));
  EXPECT_EQ(t.startup.find("w2"), nullptr);
  EXPECT_EQ(
      lines_of(t.startup, ir::Role::kForward),
      (Lines{"w1@RECOMPUTE = fill() {shape=[4,3], value=0.1}",
             R"([w1@RECOMPUTE] = broadcast([w1@RECOMPUTE]) {group="dp"})",
             "w1 = assign(w1@RECOMPUTE)", "w2@RECOMPUTE = fill() {shape=[3,1], value=0.5}",
             R"([w2@RECOMPUTE] = broadcast([w2@RECOMPUTE]) {group="dp"})",
             "v1 = fill() {shape=[4,3]}", R"("@worker_weight@" = fill() {shape=[1], value=1.0})"}));
  EXPECT_EQ(ir::parse_text(ir::to_text(t.main)), t.main);
}

// ---- owners ----

TEST(Sharding, OwnersHaveAboutTheSame) {
  ir::Program main;
  std::vector<ir::Training::Parameter> parameters;
  for (const int64_t size : {100, 7, 30, 30, 60, 5, 8}) {
    ir::VarInfo p;
    p.name = str("w", parameters.size());
    p.type = {f32, {size}};
    p.persistable = p.is_parameter = true;
    ir::Rewriter(main).add_var(p);
    parameters.push_back({p.name, p.name + "@GRAD"});
  }
  const Owners owners(main, parameters, {.group = "dp", .rank = 1, .ranks = 2});
  EXPECT_EQ(owners.of("w0"), 0);
  EXPECT_EQ(owners.of("w4"), 1);
  EXPECT_TRUE(owners.is_own("w4"));
  EXPECT_EQ(owners.loads()[0] + owners.loads()[1], 4 * 240);
  EXPECT_LE(std::abs(owners.loads()[0] - owners.loads()[1]), 4 * 8);
}

// ---- numbers ----

ir::Var network(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = 24, .act = "tanh"});
  h = nn::fc(h, {.size = 16, .act = "relu"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

using MakeOptimizer = testing::MakeOptimizer;

MakeOptimizer optimizer_of(const std::string& name, const optim::Clip& clip = {}) {
  return [=] {
    const double lr = name == "sgd" ? 0.1 : name == "momentum" ? 0.05 : 0.01;
    return optim::make(name, {{"lr", lr}}, {.clip = clip});
  };
}

struct Job {
  int workers = 2;
  std::vector<Request> strategies = {};  // beside data_parallel
  MakeOptimizer optimizer = optimizer_of("adam");
  testing::Network network = sharding_test::network;
  int first = 0, last = 5;
  std::string load = "";
};

struct Result {
  std::vector<float> losses;  // mean of all workers
  State state;                // of the checkpoint at the end
};

// The parts of "dp" that a strategy asks for.
SharedGroups with_parts(const SharedGroups& groups, const Job& o, int rank) {
  const Mesh mesh({{"dp", o.workers}}, rank);
  auto all = std::make_shared<comm::Groups>();
  comm::Communicator& dp = groups->at("dp");
  all->add("dp", {groups, &dp});
  const ResolvedStrategies resolved(o.strategies, {.mesh = mesh});
  for (const std::string& name : resolved.groups())
    if (name != "dp") all->add(name, dp.group(mesh.group(name)));
  return all;
}

Result run(Job o, const std::string& folder) {
  if (o.workers > 1) o.strategies.push_back({"data_parallel"});
  Result result;
  std::mutex adding;
  result.losses.resize(static_cast<size_t>(o.last - o.first));
  testing::run_workers(o.workers, [&](int rank, const SharedGroups& dp) {
    Worker worker(o.network, o.optimizer, o.strategies, rank, o.workers, with_parts(dp, o, rank));
    if (!o.load.empty()) worker.load(o.load);
    for (int step = o.first; step < o.last; ++step) {
      const float loss = worker.step(testing::batch_of(step, {.workers = o.workers}, rank));
      const std::scoped_lock lock(adding);
      result.losses[static_cast<size_t>(step - o.first)] += loss / static_cast<float>(o.workers);
    }
    worker.save(folder, rank);
  });
  const std::string path = train::latest_checkpoint(folder);
  result.state = load_safetensors(path + "/parameters.safetensors").tensors;
  result.state.merge(load_safetensors(path + "/state.safetensors").tensors);
  return result;
}

Result run(const Job& o) {
  const testing::TempDir folder;
  return run(o, folder.path());
}

void expect_equal(const Result& got, const Result& want, double tolerance) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < got.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], std::max(tolerance, 1e-7) * 4) << "step " << i;
  ASSERT_EQ(got.state.size(), want.state.size());
  for (const auto& [name, value] : want.state) {
    ASSERT_TRUE(got.state.contains(name)) << name;
    testing::expect_close(got.state.at(name), value, tolerance, name);
  }
}

std::vector<Request> with_sharding(std::vector<Request> others, int stage, int degree = 0) {
  others.push_back({"sharding", {{"stage", stage}, {"degree", degree}, {"segment_MB", 0.001}}});
  return others;
}

constexpr int kStages = 3;

// The sums are in another order than one worker's.
TEST(Sharding, ManyWorkersAreOne) {
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    const Result alone = run({.workers = 1, .optimizer = optimizer_of(optimizer)});
    for (int stage = 1; stage <= kStages; ++stage)
      for (const int workers : {2, 4}) {
        SCOPED_TRACE(str(optimizer, " stage ", stage, " workers ", workers));
        expect_equal(run({.workers = workers,
                          .strategies = with_sharding({}, stage),
                          .optimizer = optimizer_of(optimizer)}),
                     alone, 2e-5);
      }
  }
}

// What is divided is computed with the same numbers.
TEST(Sharding, HasTheBitsOfDataParallel) {
  const Result plain = run({.workers = 3});
  for (int stage = 1; stage <= kStages; ++stage) {
    SCOPED_TRACE(stage);
    expect_equal(run({.workers = 3, .strategies = with_sharding({}, stage)}), plain, 0);
  }
}

TEST(Sharding, GroupsAreCopiesOfEachOther) {
  const Result plain = run({.workers = 4});
  for (int stage = 1; stage <= kStages; ++stage)
    for (const int degree : {1, 2}) {
      SCOPED_TRACE(str("stage ", stage, " degree ", degree));
      expect_equal(run({.workers = 4, .strategies = with_sharding({}, stage, degree)}), plain,
                   stage == 1 ? 0 : 2e-5);
    }
}

TEST(Sharding, ClipsByTheNormOfAllGradients) {
  for (const optim::Clip& clip : {optim::clip_by_global_norm(0.3), optim::clip_by_norm(0.1)}) {
    const MakeOptimizer optimizer = optimizer_of("momentum", clip);
    const Result plain = run({.workers = 4, .optimizer = optimizer});
    for (int stage = 1; stage <= kStages; ++stage)
      for (const int degree : {2, 4}) {
        SCOPED_TRACE(str("stage ", stage, " degree ", degree));
        expect_equal(run({.workers = 4,
                          .strategies = with_sharding({}, stage, degree),
                          .optimizer = optimizer}),
                     plain, 2e-5);
      }
  }
}

using Sets = std::vector<std::pair<std::string, std::vector<Request>>>;

TEST(Sharding, WorksWithOtherStrategies) {
  const Request merge{"gradient_merge", {{"k_steps", 2}}};
  const Sets sets{{"lars_momentum", {}},
                  {"momentum", {{"lars"}}},
                  {"adam", {{"lamb"}}},
                  {"adam", {{"amp"}}},
                  {"adam", {{"recompute"}}},
                  {"adam", {merge}},
                  {"momentum", {{"amp"}, merge, {"lars"}}},
                  {"adam", {{"amp"}, {"recompute"}, merge, {"lamb"}}}};
  for (const auto& [optimizer, others] : sets) {
    const Result plain = run({.strategies = others, .optimizer = optimizer_of(optimizer)});
    for (int stage = 1; stage <= kStages; ++stage) {
      SCOPED_TRACE(str(optimizer, " stage ", stage, " ", others.size(), " ",
                       others.empty() ? "" : others.front().name));
      expect_equal(
          run({.strategies = with_sharding(others, stage), .optimizer = optimizer_of(optimizer)}),
          plain, 0);
    }
  }
}

// Collectives of a part of the workers stand under guards on which all have agreed.
TEST(Sharding, GroupsWorkWithOtherStrategies) {
  const Sets sets{{"adam", {{"amp"}, {"gradient_merge", {{"k_steps", 2}}}, {"lamb"}}},
                  {"momentum", {{"amp"}, {"recompute"}}}};
  for (const auto& [optimizer, others] : sets) {
    const MakeOptimizer clipped = optimizer_of(optimizer, optim::clip_by_global_norm(0.5));
    const Result plain = run({.workers = 4, .strategies = others, .optimizer = clipped});
    for (int stage = 1; stage <= kStages; ++stage) {
      SCOPED_TRACE(str(optimizer, " stage ", stage));
      expect_equal(
          run({.workers = 4, .strategies = with_sharding(others, stage, 2), .optimizer = clipped}),
          plain, 1e-4);
    }
  }
}

// Kernels of convolutions keep filters in layouts of their own.
ir::Var images(ir::Builder& b) {
  ir::Var h = nn::reshape(b.data("x", f32, {-1, 12}), {-1, 1, 3, 4});
  h = nn::conv2d(h, {.filters = 16, .kernel = 3, .padding = 1});
  h = nn::batch_norm(h, {.act = "relu"});
  h = nn::conv2d(h, {.filters = 32, .kernel = 3, .padding = 1, .act = "relu"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

TEST(Sharding, WorksWithAnyLayout) {
  const Job plain{.optimizer = optimizer_of("momentum"), .network = images};
  const Result want = run(plain);
  for (int stage = 1; stage <= kStages; ++stage) {
    SCOPED_TRACE(stage);
    Job o = plain;
    o.strategies = with_sharding({}, stage);
    expect_equal(run(o), want, 1e-6);
  }
}

// A parameter with two uses far apart, of which stage 3 sends it twice.
ir::Var tied(ir::Builder& b) {
  const ir::Var ids = b.data("y", i64, {-1, 1});
  const nn::ParamAttr table{.name = "table"};
  ir::Var h =
      nn::reshape(nn::embedding(ids, {.rows = 5, .dim = 12, .weight_attr = table}), {-1, 12});
  h = nn::add(h, b.data("x", f32, {-1, 12}));
  for (int i = 0; i < 3; ++i) h = nn::fc(h, {.size = 12, .act = "tanh"});
  const ir::Var logits = nn::matmul(h, b.var("table"), {.transpose_y = true});
  return nn::mean(nn::softmax_cross_entropy(logits, ids));
}

TEST(Sharding, TiedParametersAreSentForEachUse) {
  const Job plain{.network = tied};
  const Result want = run(plain);
  for (int stage = 1; stage <= kStages; ++stage) {
    SCOPED_TRACE(stage);
    Job o = plain;
    o.strategies = with_sharding({}, stage);
    expect_equal(run(o), want, 1e-6);
  }
}

ir::Var table(ir::Builder& b) {
  const ir::Var ids = b.data("y", i64, {-1, 1});
  ir::Var h = nn::reshape(nn::embedding(ids, {.rows = 5, .dim = 6, .sparse = true}), {-1, 6});
  h = nn::concat({h, b.data("x", f32, {-1, 12})}, 1);
  return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), ids));
}

TEST(Sharding, RowsOfATableGoToItsOwner) {
  const Job plain{.optimizer = optimizer_of("sgd"), .network = table};
  const Result want = run(plain);
  for (int stage = 1; stage <= kStages; ++stage) {
    SCOPED_TRACE(stage);
    Job o = plain;
    o.strategies = with_sharding({}, stage);
    expect_equal(run(o), want, 0);
  }
}

// A checkpoint has whole variables and loads into any number of workers and any degree.
TEST(Sharding, CheckpointsKnowNoDegree) {
  const Result whole = run({.workers = 1});
  for (int stage = 1; stage <= kStages; ++stage) {
    const testing::TempDir saved;
    run({.workers = 4, .strategies = with_sharding({}, stage, 2), .last = 2}, saved.path());
    for (const auto& [workers, degree] :
         std::vector<std::pair<int, int>>{{1, 0}, {2, 2}, {4, 4}, {4, 2}, {3, 3}, {2, 0}}) {
      SCOPED_TRACE(str("stage ", stage, " to ", workers, " workers of degree ", degree));
      Job o{.workers = workers, .first = 2, .load = saved.path()};
      if (degree > 0) o.strategies = with_sharding({}, stage, degree);
      const Result rest = run(o);
      for (const auto& [name, value] : whole.state)
        testing::expect_close(rest.state.at(name), value, 2e-5, name);
    }
  }
}

// ---- memory ----

runtime::PlannedProgram plan_of(int rank, int workers, std::vector<Request> strategies) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  ir::Var h = b.data("x", f32, {-1, 64});
  for (int i = 0; i < 8; ++i) h = nn::fc(h, {.size = 64, .act = "relu"});
  const ir::Var loss = nn::mean(h);
  strategies.push_back({"data_parallel"});
  testing::minimize_for_worker(loss, *optimizer_of("adam")(), strategies, rank, workers);
  runtime::PlanOptions options;
  options.mesh = Mesh({{"dp", workers}}, rank);
  return runtime::plan_program(main, {{"x", {f32, {2, 64}}}}, {loss.name()}, options);
}

// Eight layers of the same size, so that the shares are equal.
TEST(Sharding, ThePlanShowsWhatIsSaved) {
  const auto plain = plan_of(0, 4, {}).memory();
  for (int rank = 0; rank < 4; ++rank) {
    const auto state = plan_of(rank, 4, with_sharding({}, 1)).memory();
    EXPECT_EQ(state.parameters, plain.parameters);
    EXPECT_NEAR(static_cast<double>(state.state), static_cast<double>(plain.state) / 4,
                static_cast<double>(plain.state) * 0.02)
        << "rank " << rank;
    const auto gradients = plan_of(rank, 4, with_sharding({}, 2)).memory();
    EXPECT_EQ(gradients.state, state.state);
    EXPECT_EQ(gradients.buckets, 0u);
    const auto parameters = plan_of(rank, 4, with_sharding({}, 3)).memory();
    EXPECT_EQ(parameters.state, state.state);
    EXPECT_NEAR(static_cast<double>(parameters.parameters),
                static_cast<double>(plain.parameters) / 4,
                static_cast<double>(plain.parameters) * 0.02)
        << "rank " << rank;
  }
}

// ---- what is refused ----

TEST(Sharding, RefusesWhatMakesNoSense) {
  const auto refused = [](std::initializer_list<std::string_view> parts, const ir::Attrs& options) {
    testing::expect_error(Error::Kind::kInvalidArgument, parts, [&] { sharded(0, options, 4); });
  };
  refused({"sharding", "degree is 3", "4 workers"}, {{"degree", 3}});
  refused({"sharding", "stage is 4"}, {{"stage", 4}});
  refused({"sharding", "stage is 0"}, {{"stage", 0}});
  refused({"sharding", "segment_MB", "positive"}, {{"segment_MB", 0.0}});
  for (const char* other : {"localsgd", "adaptive_localsgd", "dgc"})
    testing::expect_error(Error::Kind::kInvalidArgument, {"sharding", other}, [&] {
      (void)ResolvedStrategies({{"sharding"}, {other}, {"data_parallel"}},
                               {.mesh = Mesh({{"dp", 2}}, 0)});
    });
}

TEST(Sharding, SettingsOfTheOriginal) {
  const auto options_of = [](const std::function<void(fleet::DistributedStrategy&)>& set,
                             int workers) {
    fleet::DistributedStrategy s;
    s.sharding = true;
    set(s);
    for (const Request& r : fleet::requests_of(s, fleet::mesh_of(s, workers, 0)))
      if (r.name == "sharding") return r.options;
    return ir::Attrs{};
  };
  const auto degree_of = [&](const std::function<void(fleet::DistributedStrategy&)>& set,
                             int workers) {
    return options_of(set, workers).at("degree").as<int64_t>();
  };
  EXPECT_EQ(degree_of([](auto& s) { s.sharding_configs.sharding_degree = 4; }, 1), 0);
  EXPECT_EQ(degree_of([](auto&) {}, 2), 0);  // all
  EXPECT_EQ(degree_of([](auto& s) { s.sharding_configs.sharding_degree = 2; }, 4), 2);
  EXPECT_EQ(degree_of([](auto& s) { s.sharding_configs.dp_degree = 2; }, 16), 8);
  EXPECT_EQ(degree_of([](auto& s) { s.hybrid_configs.sharding_degree = 4; }, 8), 4);
  EXPECT_EQ(degree_of(
                [](auto& s) {
                  s.sharding_configs.hybrid_dp = true;
                  s.sharding_configs.sharding_group_size = 2;
                },
                4),
            2);
  EXPECT_EQ(options_of([](auto& s) { s.sharding_configs.fuse_broadcast_MB = 8; }, 2)
                .at("segment_MB")
                .as<double>(),
            8);
  const auto refused = [&](std::initializer_list<std::string_view> parts,
                           const std::function<void(fleet::DistributedStrategy&)>& set) {
    testing::expect_error(Error::Kind::kInvalidArgument, parts, [&] { options_of(set, 4); });
  };
  refused({"sharding_degree 3", "4 workers"},
          [](auto& s) { s.sharding_configs.sharding_degree = 3; });
  refused({"sharding_degree 2", "dp_degree 4", "4 workers"}, [](auto& s) {
    s.sharding_configs.sharding_degree = 2;
    s.sharding_configs.dp_degree = 4;
  });
  refused({"sharding 3", "4 workers"}, [](auto& s) { s.hybrid_configs.sharding_degree = 3; });
  refused({"sharding_degree is 2", "off"}, [](auto& s) {
    s.sharding = false;
    s.hybrid_configs.sharding_degree = 2;
  });
  refused({"stage is 5"}, [](auto& s) { s.sharding_configs.stage = 5; });
  refused({"mp_degree is 2", "hybrid_configs"}, [](auto& s) { s.sharding_configs.mp_degree = 2; });
  refused({"segment_anchors"},
          [](auto& s) { s.sharding_configs.sharding_segment_strategy = "segment_anchors"; });
  refused({"gradient_merge"}, [](auto& s) { s.sharding_configs.gradient_merge_acc_step = 2; });
  refused({"fp16_allreduce", "stage 2"}, [](auto& s) {
    s.sharding_configs.stage = 2;
    s.fp16_allreduce = true;
  });
}

}  // namespace
}  // namespace fleetx::strategies::sharding_test
