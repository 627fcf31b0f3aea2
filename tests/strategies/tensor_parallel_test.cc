// Layers that ranks divide: several ranks compute what one computes with the whole layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/uniform.h"
#include "fleetx/nn/nn.h"
#include "fleetx/nn/parallel.h"
#include "tests/strategies/mesh_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing::tensor_parallel_test {
namespace {

using ir::Builder;
using ir::Var;
using Network = std::function<Var(Builder&, int partitions)>;

// A table by rows, a pair by columns and by rows, a layer by columns that is gathered, one by rows
// of values that all ranks have, and whole layers before, between and behind them.
Var network(Builder& b, int partitions) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  const Var words = nn::parallel_embedding(
      nn::reshape(y, {-1}), {.rows = 8, .dim = 12, .partitions = partitions, .name = "table"});
  Var h = nn::fc(nn::add(x, nn::scale(words, 0.3)), {.size = 12, .act = "tanh"});
  h = nn::parallel_linear(
      h, {.rows = 12, .columns = 16, .axis = 1, .partitions = partitions, .gather_out = false});
  h = nn::parallel_linear(nn::relu(h),
                          {.rows = 16, .columns = 12, .axis = 0, .partitions = partitions});
  h = nn::layer_norm(h);
  h = nn::parallel_linear(h, {.rows = 12, .columns = 8, .axis = 1, .partitions = partitions});
  h = nn::parallel_linear(nn::tanh(h),
                          {.rows = 8, .columns = 6, .axis = 0, .partitions = partitions});
  return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
}

struct Job {
  int dp = 1, mp = 1;
  std::string optimizer = "sgd";
  optim::Clip clip = {};
  std::vector<strategies::Request> more = {};
  int steps = 6;
  std::string load = "", save = "";
  Network net = network;
};

struct Result {
  std::vector<float> losses;            // mean over dp; the same on all ranks along mp
  std::map<std::string, Tensor> state;  // whole
};

std::vector<strategies::Request> requests_of(const Job& job) {
  std::vector<strategies::Request> requests = job.more;
  if (job.dp > 1) requests.push_back({"data_parallel"});
  if (job.mp > 1) requests.push_back({"tensor_parallel"});
  return requests;
}

struct Programs {
  ir::Program main, startup;
  Builder b{main, startup};
  std::string loss;

  Programs(const Job& job, int rank) {
    const Var l = job.net(b, job.mp);
    loss = l.name();
    // Different first values, so that ranks agree only if those of rank 0 are shared.
    startup.set_seed(static_cast<uint64_t>(rank + 1));
    const auto optimizer = optim::make(job.optimizer, {{"lr", 0.1}}, {.clip = job.clip});
    strategies::ResolvedStrategies resolved(requests_of(job),
                                            {.mesh = Mesh({{"dp", job.dp}, {"mp", job.mp}}, rank)});
    resolved.validate(main);
    strategies::minimize(
        {main, startup}, resolved, [&] { (void)optimizer->backward(l); },
        [&] { optimizer->apply_gradients(autograd::trained(b)); });
  }
};

Result train(const Job& job) {
  const int world = job.dp * job.mp;
  const auto groups = groups_of(Mesh({{"dp", job.dp}, {"mp", job.mp}}, 0), {"dp", "mp"});
  std::vector<std::vector<float>> losses(static_cast<size_t>(world));
  std::vector<std::map<std::string, Tensor>> replicated(static_cast<size_t>(world));
  Result result;
  TempDir folder;
  run_workers(world, [&](int rank, const SharedGroups&) {
    const auto r = static_cast<size_t>(rank);
    Programs p(job, rank);
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups[r]}});
    exe.run(p.startup, scope);
    if (!job.load.empty())
      train::load_checkpoint(train::latest_checkpoint(job.load), scope, {{"main", &p.main}},
                             groups[r]);
    const TrainOptions data{.workers = job.dp};
    for (int step = 0; step < job.steps; ++step)
      losses[r].push_back(
          exe.run(p.main, scope, batch_of(step, data, rank / job.mp), {p.loss})[0].item<float>());
    for (const ir::VarInfo* v : p.main.vars())
      if (v->persistable && v->placement.is_replicated())
        replicated[r].emplace(v->name, scope.get(v->name).clone());
    // Files hold whole variables.
    const std::string to = job.save.empty() ? folder.path() : job.save;
    train::save_checkpoint(to, scope, {{"main", &p.main}}, {},
                           {.writes = rank == 0, .groups = groups[r]});
    groups[r]->find("mp")->barrier();
    groups[r]->find("dp")->barrier();
    if (rank != 0) return;
    Job alone = job;
    alone.dp = alone.mp = 1;
    alone.more.clear();
    Programs one(alone, 0);
    runtime::Scope whole;
    runtime::Executor().run(one.startup, whole);
    train::load_checkpoint(train::latest_checkpoint(to), whole, {{"main", &one.main}});
    for (const ir::VarInfo* v : one.main.vars())
      if (v->persistable) result.state.emplace(v->name, whole.get(v->name).clone());
  });
  for (size_t r = 1; r < losses.size(); ++r)
    for (const auto& [name, value] : replicated[0])
      expect_close(replicated[r].at(name), value, 0, str(name, " of rank ", r));
  result.losses.assign(static_cast<size_t>(job.steps), 0);
  for (size_t r = 0; r < losses.size(); ++r)
    for (size_t i = 0; i < losses[r].size(); ++i) {
      const size_t first = r / static_cast<size_t>(job.mp) * static_cast<size_t>(job.mp);
      EXPECT_EQ(losses[r][i], losses[first][i]) << "rank " << r << ", step " << i;
      result.losses[i] += losses[r][i] / static_cast<float>(world);
    }
  return result;
}

void expect_equal(const Result& got, const Result& want, double tolerance,
                  const std::string& what) {
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance) << what << ", loss of step " << i;
  ASSERT_EQ(got.state.size(), want.state.size());
  for (const auto& [name, value] : got.state)
    expect_close(value, want.state.at(name), tolerance, what + ", " + name);
}

void expect_as_one(const Job& job) {
  Job one = job;
  one.dp = one.mp = 1;
  one.more.clear();
  expect_equal(train(job), train(one), 1e-6, str(job.optimizer, ", dp ", job.dp, ", mp ", job.mp));
}

TEST(TensorParallel, FirstValuesAreThoseOfTheWholeLayers) {
  const Result one = train({.steps = 0});
  for (const int mp : {2, 4}) expect_equal(train({.mp = mp, .steps = 0}), one, 0, str("mp ", mp));
}

TEST(TensorParallel, ComputesWhatOneRankComputes) {
  for (const char* optimizer : {"sgd", "momentum", "adam"})
    for (const int mp : {2, 4}) expect_as_one({.mp = mp, .optimizer = optimizer});
}

TEST(TensorParallel, BesideDataParallel) {
  expect_as_one({.dp = 2, .mp = 2});
  expect_as_one({.dp = 2, .mp = 2, .optimizer = "adam"});
}

TEST(TensorParallel, GlobalNormCountsPartsOnce) {
  expect_as_one({.mp = 2, .clip = optim::clip_by_global_norm(0.05)});
  expect_as_one({.dp = 2, .mp = 2, .clip = optim::clip_by_global_norm(0.05)});
}

TEST(TensorParallel, BesideGradientMerge) {
  const std::vector<strategies::Request> merge{{"gradient_merge", {{"k_steps", 2}}}};
  const Result got = train({.mp = 2, .more = merge}), want = train({.more = merge});
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-6) << "step " << i;
}

TEST(TensorParallel, CheckpointsLoadIntoAnotherDegree) {
  const Result whole = train({.optimizer = "momentum", .steps = 3});
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{2, 1}, {1, 2}, {4, 2}}) {
    TempDir folder;
    train({.mp = from, .optimizer = "momentum", .steps = 3, .save = folder.path()});
    expect_equal(train({.mp = to, .optimizer = "momentum", .steps = 0, .load = folder.path()}),
                 {{}, whole.state}, 1e-6, str("from ", from, " to ", to));
  }
}

// The second forward part sends what the first did.
TEST(TensorParallel, BesideRecompute) {
  const auto net = [](Builder& b, int n) {
    const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
    Var h = nn::fc(x, {.size = 12, .act = "tanh"});
    for (int i = 0; i < 2; ++i) {
      h = nn::tanh(nn::parallel_linear(
          h, {.rows = 12, .columns = 16, .axis = 1, .partitions = n, .gather_out = false}));
      h = b.op(
          "assign",
          {{"x", nn::parallel_linear(h, {.rows = 16, .columns = 12, .axis = 0, .partitions = n})}},
          {}, {{"out", str("kept_", i)}});
    }
    return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
  };
  const strategies::Request again{"recompute", {{"checkpoints", ir::Strings{"kept_0", "kept_1"}}}};
  expect_as_one({.mp = 2, .more = {again}, .net = net});
  expect_as_one({.dp = 2, .mp = 2, .optimizer = "adam", .more = {again}, .net = net});
}

// Classes are divided, too: logits are never whole.
TEST(TensorParallel, LossOfDividedClasses) {
  const auto net = [](Builder& b, int n) {
    const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
    const Var h = nn::fc(x, {.size = 12, .act = "tanh"});
    const Var logits = nn::parallel_linear(
        h, {.rows = 12, .columns = 8, .axis = 1, .partitions = n, .gather_out = false});
    return nn::mean(
        nn::parallel_softmax_cross_entropy(logits, y, {.partitions = n, .ignore_index = 3}));
  };
  for (const int mp : {2, 4}) expect_as_one({.mp = mp, .net = net});
  expect_as_one({.dp = 2, .mp = 2, .optimizer = "adam", .net = net});
}

// By columns, then by rows: one sum in each direction.
TEST(TensorParallel, APairNeedsOneSum) {
  const Programs p(
      {.mp = 2,
       .net =
           [](Builder& b, int n) {
             const Var x = b.data("x", f32, {-1, 12});
             Var h = nn::fc(x, {.size = 12});
             h = nn::parallel_linear(
                 h, {.rows = 12, .columns = 16, .axis = 1, .partitions = n, .gather_out = false});
             EXPECT_EQ(h.shape().back(), 8);
             return nn::mean(nn::parallel_linear(
                 nn::relu(h), {.rows = 16, .columns = 12, .axis = 0, .partitions = n}));
           }},
      1);
  std::vector<std::string> calls;
  for (const ir::Op& op : p.main.ops())
    if (ir::is_collective(op)) calls.push_back(op.type());
  EXPECT_EQ(calls, (std::vector<std::string>{"group_sum", "all_reduce"}));
  EXPECT_EQ(p.main.var("fc_1.w_0").placement, ir::Placement::sharded("mp", 1));
  EXPECT_EQ(p.main.var("fc_1.b_0").placement, ir::Placement::sharded("mp", 0));
  EXPECT_EQ(p.main.var("fc_2.w_0").placement, ir::Placement::sharded("mp", 0));
  EXPECT_TRUE(p.main.var("fc_2.b_0").placement.is_replicated());
}

// Each rank draws for its own part; what all ranks have is dropped alike.
TEST(TensorParallel, DropoutDrawsPerAxis) {
  const Job job{.dp = 2, .mp = 2, .net = [](Builder& b, int n) {
                  const Var x = b.data("x", f32, {-1, 12});
                  b.data("y", i64, {-1, 1});
                  Var h = nn::dropout(nn::fc(x, {.size = 12}), {.p = 0.5});
                  h = nn::parallel_linear(
                      h,
                      {.rows = 12, .columns = 16, .axis = 1, .partitions = n, .gather_out = false});
                  h = nn::parallel_linear(nn::dropout(h, {.p = 0.5}),
                                          {.rows = 16, .columns = 12, .axis = 0, .partitions = n});
                  return nn::mean(nn::dropout(h, {.p = 0.5}));
                }};
  const Programs p(job, 0);
  std::vector<ir::Strings> axes;
  for (const ir::Op& op : p.main.ops())
    if (op.type() == "dropout") axes.push_back(op.attr<ir::Strings>("axes"));
  EXPECT_EQ(axes, (std::vector<ir::Strings>{{"dp"}, {"dp", "mp"}, {"dp"}}));
  train(job);  // checks that whole parameters stay the same on all ranks
}

// ---- layers that say how they may be divided ----

// Whole layers of a transformer: nothing in it speaks of ranks.
Network transformer(double dropout = 0, int64_t heads = 4) {
  return [=](Builder& b, int) {
    const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
    Var h = nn::reshape(nn::fc(x, {.size = 24}), {-1, 3, 8});
    for (int i = 0; i < 2; ++i)
      h = nn::encoder_layer(h, {.heads = heads,
                                .intermediate = 16,
                                .act = "gelu",
                                .dropout = dropout,
                                .attention_dropout = dropout,
                                .name = str("layer_", i)});
    return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
  };
}

TEST(TensorParallel, DividesTheLayersOfATransformer) {
  for (const int mp : {2, 4})
    // Not adam: the bias of a key has no gradient but rounding errors, which it divides by their
    // size.
    for (const char* optimizer : {"sgd", "momentum"})
      expect_as_one({.mp = mp, .optimizer = optimizer, .net = transformer()});
  expect_as_one({.dp = 2, .mp = 2, .net = transformer()});
  expect_as_one({.mp = 2, .clip = optim::clip_by_global_norm(0.05), .net = transformer()});
}

TEST(TensorParallel, DividedLayersSendTwiceInEachDirection) {
  const Programs p({.mp = 2, .net = transformer()}, 1);
  std::map<std::string, int> calls;
  std::vector<int64_t> heads;
  for (const ir::Op& op : p.main.ops()) {
    if (ir::is_collective(op)) ++calls[op.type()];
    if (op.type() == "attention") heads.push_back(op.attr<int64_t>("heads"));
  }
  EXPECT_EQ(calls, (std::map<std::string, int>{{"all_reduce", 4}, {"group_sum", 4}}));
  EXPECT_EQ(heads, (std::vector<int64_t>{2, 2}));
  const auto placed = [&](const char* name) { return p.main.var(name).placement; };
  EXPECT_EQ(placed("layer_0_attention_query.w_0"), ir::Placement::sharded("mp", 1));
  EXPECT_EQ(placed("layer_0_attention_query.b_0"), ir::Placement::sharded("mp", 0));
  EXPECT_EQ(placed("layer_0_attention_output.w_0"), ir::Placement::sharded("mp", 0));
  EXPECT_TRUE(placed("layer_0_attention_output.b_0").is_replicated());
  EXPECT_EQ(p.main.var("layer_1_ffn_1.w_0").type.shape, (Shape{8, 8}));
}

// With dropout, attention is made of several ops, and ranks drop elements of their own parts.
TEST(TensorParallel, DividedLayersWithDropoutStayTheSameOnAllRanks) {
  train({.dp = 2, .mp = 2, .net = transformer(0.3)});
}

TEST(TensorParallel, DividedLayersAreSavedWhole) {
  const Result whole = train({.optimizer = "momentum", .steps = 3, .net = transformer()});
  TempDir folder;
  train(
      {.mp = 2, .optimizer = "momentum", .steps = 3, .save = folder.path(), .net = transformer()});
  expect_equal(train({.mp = 4,
                      .optimizer = "momentum",
                      .steps = 0,
                      .load = folder.path(),
                      .net = transformer()}),
               {{}, whole.state}, 1e-6, "from 2 to 4");
}

// ---- amp ----

// As with one rank: products round to bf16 in another order.
TEST(TensorParallel, BesideAmp) {
  for (const Network& net : {Network(network), transformer()}) {
    const std::vector<strategies::Request> amp{{"amp"}};
    const Result got = train({.mp = 2, .more = amp, .net = net});
    const Result want = train({.more = amp, .net = net});
    for (size_t i = 0; i < want.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i], want.losses[i], 2e-2) << "step " << i;
    train({.dp = 2, .mp = 2, .more = amp, .net = net});
    train({.mp = 2, .more = {{"amp"}, {"gradient_merge", {{"k_steps", 2}}}}, .net = net});
  }
}

// Between a scale that is small enough and one that is too large for all gradients there are those
// with which the part of one rank overflows. All ranks leave such a step out: train() compares what
// they have.
TEST(TensorParallel, RanksLeaveAStepOutTogether) {
  const auto with_scale = [](int power) {
    return Job{.mp = 2,
               .more = {{"amp",
                         {{"dtype", "float16"},
                          {"init_loss_scaling", std::ldexp(1.0, power)},
                          {"use_dynamic_loss_scaling", false}}}},
               .steps = 1};
  };
  const Programs p(with_scale(15), 0);
  EXPECT_TRUE(ir::Uniform(p.main, "mp", ir::Uniform::Feeds::kSame).holds(p.main.training().ready));
  const Result first = train({.steps = 0});
  int applied = 0, left_out = 0;
  for (int power = 10; power <= 30; power += 2) {
    const Result got = train(with_scale(power));
    const auto same = std::ranges::equal(got.state.at("fc_0.w_0").data<float>(),
                                         first.state.at("fc_0.w_0").data<float>());
    ++(same ? left_out : applied);
  }
  EXPECT_GT(applied, 0);
  EXPECT_GT(left_out, 0);
}

// ---- what is refused ----

void refused(std::initializer_list<std::string_view> parts, const Job& job) {
  expect_error(Error::Kind::kInvalidArgument, parts, [&] { Programs(job, 0); });
}

Network linear(nn::ParallelLinearOptions o, bool parted = false) {
  return [=](Builder& b, int) {
    return nn::mean(nn::parallel_linear(b.data("x", f32, {-1, parted ? 7 : 12}), o));
  };
}

TEST(TensorParallel, RefusesWhatCannotBeDivided) {
  refused({"16 columns", "3 equal partitions"},
          {.mp = 3, .net = linear({.rows = 12, .columns = 16, .axis = 1, .partitions = 3})});
  refused({"12 rows", "5 equal partitions"},
          {.mp = 5, .net = linear({.rows = 12, .columns = 16, .axis = 0, .partitions = 5})});
  refused({"axis must be 0 (rows) or 1 (columns), got 2"},
          {.mp = 2, .net = linear({.rows = 12, .columns = 16, .axis = 2, .partitions = 2})});
  refused({"its width must be 12 or", "6"},
          {.mp = 2, .net = linear({.rows = 12, .columns = 16, .axis = 0, .partitions = 2}, true)});
  refused({"gather_out=False by rows"},
          {.mp = 2,
           .net = linear(
               {.rows = 12, .columns = 16, .axis = 0, .partitions = 2, .gather_out = false})});
  refused({"9 rows", "2 equal partitions"},
          {.mp = 2, .net = [](Builder& b, int n) {
             return nn::mean(nn::parallel_embedding(b.data("x", i64, {-1}),
                                                    {.rows = 9, .dim = 4, .partitions = n}));
           }});
}

TEST(TensorParallel, RefusesAnotherDegree) {
  refused({"num_partitions is 2", "mp_degree is 4"},
          {.mp = 4, .net = linear({.rows = 12, .columns = 16, .axis = 1, .partitions = 2})});
  refused({"mp_degree is 2", "no layer of the program is split"},
          {.mp = 2, .net = [](Builder& b, int) {
             return nn::mean(nn::fc(b.data("x", f32, {-1, 12}), {.size = 3}));
           }});
}

TEST(TensorParallel, RefusesWholeParametersOfDividedValues) {
  refused({"'between.w_0'", "split that layer too"},
          {.mp = 2, .net = [](Builder& b, int n) {
             const Var h = nn::parallel_linear(
                 b.data("x", f32, {-1, 12}),
                 {.rows = 12, .columns = 16, .axis = 1, .partitions = n, .gather_out = false});
             return nn::mean(
                 nn::parallel_linear(nn::fc(h, {.size = 8, .bias = false, .name = "between"}),
                                     {.rows = 16, .columns = 3, .partitions = n}));
           }});
}

TEST(TensorParallel, RefusesLayersThatTheDegreeDoesNotDivide) {
  refused({"'layer_0_attention_query'", "8", "3 ranks"}, {.mp = 3, .net = transformer()});
  refused({"2 heads", "4 ranks", "mp_degree that divides"}, {.mp = 4, .net = transformer(0, 2)});
}

TEST(TensorParallel, RefusesStrategiesThatNeedWholeParameters) {
  for (const char* other :
       {"lars", "lamb", "dgc", "localsgd", "adaptive_localsgd", "parameter_server"})
    expect_error(Error::Kind::kInvalidArgument, {"tensor_parallel", other, "cannot be used"}, [&] {
      std::vector<strategies::Request> requests{{"tensor_parallel"}, {other}};
      if (std::string_view(other) != "parameter_server") requests.push_back({"data_parallel"});
      strategies::ResolvedStrategies(requests, {.mesh = Mesh({{"dp", 2}, {"mp", 2}}, 0)});
    });
}

TEST(TensorParallel, FollowsFromTheMesh) {
  fleet::DistributedStrategy s;
  s.hybrid_configs.mp_degree = 2;
  const auto asked = [&](int workers) {
    std::vector<std::string> names;
    for (const auto& r : fleet::requests_of(s, fleet::mesh_of(s, workers, 0)))
      names.push_back(r.name);
    return names;
  };
  EXPECT_EQ(asked(2), (std::vector<std::string>{"tensor_parallel"}));
  EXPECT_EQ(asked(4), (std::vector<std::string>{"data_parallel", "tensor_parallel"}));
  s.tensor_parallel = true;
  s.tensor_parallel_configs.tensor_parallel_degree = 4;
  expect_error(Error::Kind::kInvalidArgument, {"tensor_parallel_degree is 4", "mp_degree 2"},
               [&] { asked(2); });
  s.tensor_parallel_configs.tensor_parallel_degree = 2;
  EXPECT_EQ(asked(2), (std::vector<std::string>{"tensor_parallel"}));
  s.tensor_parallel_configs.tensor_init_seed = 7;
  expect_error(Error::Kind::kInvalidArgument, {"tensor_init_seed", "paddle.seed"},
               [&] { asked(2); });
}

TEST(TensorParallel, RefusesNormsOfParts) {
  refused({"clip_by_norm", "global norm"}, {.mp = 2, .clip = optim::clip_by_norm(1.0)});
  refused({"lamb", "every rank has a part only"}, {.mp = 2, .optimizer = "lamb"});
}

}  // namespace
}  // namespace fleetx::testing::tensor_parallel_test
