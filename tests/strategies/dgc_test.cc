#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/worker.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::strategies::dgc_test {
namespace {

using testing::Job;
using testing::MakeOptimizer;
using testing::Trace;
using testing::Worker;

constexpr const char* kWide = "wide.w_0";  // 16,800 elements; others have less

ir::Var perceptron(ir::Builder& b) {
  const ir::Var h =
      nn::fc(b.data("x", f32, {-1, 12}), {.size = 1400, .act = "tanh", .name = "wide"});
  const ir::Var logits = nn::fc(h, {.size = 5, .name = "last"});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

// Everything that it trains is compressed.
ir::Var one_layer(ir::Builder& b) {
  const ir::Var h =
      nn::fc(b.data("x", f32, {-1, 12}), {.size = 1400, .bias = false, .name = "wide"});
  const ir::Var target = nn::cast(b.data("y", i64, {-1, 1}), f32);
  return nn::scale(nn::mean(nn::square(nn::sub(nn::tanh(h), target))), 100.0);
}

MakeOptimizer momentum(const optim::MomentumOptions& options) {
  return [options] { return std::make_unique<optim::Momentum>(options); };
}

std::vector<Request> dgc(ir::Attrs options = {}) {
  return {{"data_parallel"}, {"dgc", std::move(options)}};
}

constexpr const char* kText = R"(program
data x : f32[-1,128]
param w : f32[128,128]
param b : f32[128]
state lr : f32[1]
state @step@ : i64[1]
state mw : f32[128,128]
state mb : f32[128]
var y : f32[-1,128]
var loss : f32[1]
var dloss : f32[1]
var dy : f32[-1,128]
var dw : f32[128,128]
var db : f32[128]

forward:
y = fc(x, w, b)
loss = mean(y)

backward:
dloss = fill() {shape=[1], value=1.0}
dy = mean_grad(y, dloss)
_, dw, db = fc_grad(x, w, b, _, dy)

training:
loss(loss, dloss)
parameter(w, dw, _)
parameter(b, db, _)
)";

constexpr const char* kStartup = R"(program
param w : f32[128,128]
state mw : f32[128,128]

forward:
w = fill() {shape=[128,128]}
mw = fill() {shape=[128,128]}
)";

TEST(Dgc, ProgramText) {
  ir::Program main = ir::parse_text(kText), startup = ir::parse_text(kStartup);
  ResolvedStrategies resolved(
      dgc({{"rampup_begin_step", 100}, {"sparsity", ir::Floats{0.75, 0.99}}}),
      {.mesh = Mesh({{"dp", 2}}, 1)});
  strategies::minimize(
      {main, startup}, resolved, [] {},
      [&] {
        ir::Rewriter rw(main);
        for (const std::string p : {"w", "b"})
          rw.append(
              {.type = "momentum",
               .inputs = {{"param", {p}},
                          {"grad", {main.training().find(p)->gradient}},
                          {"velocity", {"m" + p}},
                          {"lr", {"lr"}}},
               .outputs = {{"param_out", {p}}, {"velocity_out", {"m" + p}}},
               .attrs = {{"mu", 0.8}, {"l2", ir::Floats{0.01}}, {"lr_factors", ir::Floats{2}}},
               .role = ir::Role::kUpdate});
        rw.edit_training().step = "@step@";
        for (auto& p : rw.edit_training().parameters) p.learning_rate = "lr";
      });
  std::string text;
  for (const ir::Op& op : main.ops())
    if (op.role != ir::Role::kForward) text += ir::to_text(op) + "\n";
  EXPECT_EQ(text, R"(dloss = assign("@worker_weight@")
dy = mean_grad(y, dloss)
_, dw, db = fc_grad(x, w, b, _, dy)
[db], all_reduce_ticket = all_reduce_start([db], @step@) {group="dp", op="average"}
[dw@DGC], [mw], [w__dgc_v__] = dgc([w], [dw], [mw], [w__dgc_v__], @step@) {group="dp", l1=[0.0], l2=[0.01], max_norm=[0.0], mu=0.8, rampup_begin_step=100, ranks=2, sparsity=[0.75,0.99]}
[db] = all_reduce_wait([db], all_reduce_ticket) {group="dp", op="average"}
[w] = sgd([w], [dw@DGC], lr, _) {lr_factors=[2.0]}
[b], [mb] = momentum([b], [db], [mb], lr, _) {l2=[0.01], lr_factors=[2.0], mu=0.8}
)");
  EXPECT_EQ(main.find("w__dgc_u__"), nullptr);
  EXPECT_EQ(startup.find("w__dgc_u__"), nullptr);
  for (const char* state : {"mw", "w__dgc_v__"}) {
    EXPECT_EQ(str(main.var(state).placement), "per_rank(dp, average)");
    EXPECT_EQ(main.var(state).placement, startup.var(state).placement);
  }
}

TEST(Dgc, BeforeCompressionIsMomentum) {
  for (const optim::MomentumOptions& options : {optim::MomentumOptions{.lr = 0.05},
                                                {.lr = 0.05, .nesterov = true, .l2 = 1e-3},
                                                {.lr = 0.05, .clip = optim::clip_by_norm(0.05)}}) {
    Job o{.network = perceptron,
          .optimizer = momentum(options),
          .strategies = dgc({{"rampup_begin_step", 100}}),
          .workers = 3,
          .data = {.batch = 24}};
    const Trace got = testing::run(o);
    o.strategies = {{"data_parallel"}};
    const Trace want = testing::run(o);
    for (size_t s = 0; s < want.losses.size(); ++s)
      EXPECT_NEAR(got.losses[s][0], want.losses[s][0], 1e-6 * std::abs(want.losses[s][0]));
    for (const auto& [name, value] : want.state[0])
      if (value.dtype() == f32) testing::expect_close(got.state[0].at(name), value, 1e-6, name);
  }
}

TEST(Dgc, WithSparsity0IsGradientDescent) {
  Job o{.network = one_layer,
        .optimizer = momentum({.lr = 0.02, .l2 = 1e-3}),
        .strategies = dgc({{"sparsity", ir::Floats{0.0}}}),
        .last = 20};
  const Trace got = testing::run(o);
  o.optimizer = [] {
    return std::make_unique<optim::Sgd>(optim::SgdOptions{.lr = 0.02, .l2 = 1e-3});
  };
  o.strategies = {{"data_parallel"}};
  const Trace want = testing::run(o);
  for (size_t s = 0; s < want.losses.size(); ++s)
    EXPECT_NEAR(got.losses[s][0], want.losses[s][0], 1e-5 * std::abs(want.losses[s][0]));
  testing::expect_close(got.state[0].at(kWide), want.state[0].at(kWide), 1e-5, kWide);
}

// Gradients of workers alone; compression as the paper has it, in the test.
struct Options {
  double lr = 0.02, mu = 0.9, l2 = 0, max_norm = 0;
  bool nesterov = false;
  int64_t begin = 0, rampup = 1;
  ir::Floats sparsity = {0.99};
};

using Vector = std::vector<double>;

struct Reference {
  Vector p;
  std::vector<Vector> u, v;

  static void clip(Vector& g, double limit) {
    const double norm = std::sqrt(std::inner_product(g.begin(), g.end(), g.begin(), 0.0));
    if (limit > 0 && norm > limit)
      for (double& x : g) x *= limit / norm;
  }

  void step(std::vector<Vector> gs, const Options& o, int64_t step) {
    const size_t n = p.size(), workers = gs.size();
    Vector mean(n);
    if (step < o.begin) {
      for (const Vector& g : gs)
        for (size_t i = 0; i < n; ++i) mean[i] += g[i] / static_cast<double>(workers);
      clip(mean, o.max_norm);
      gs.assign(workers, mean);
    } else {
      for (Vector& g : gs) clip(g, o.max_norm * std::sqrt(static_cast<double>(workers)));
      mean.assign(n, 0.0);
    }
    const auto stages = static_cast<int64_t>(o.sparsity.size());
    const auto stage = static_cast<size_t>(
        std::clamp<int64_t>((step - o.begin) * stages / o.rampup, 0, stages - 1));
    const auto k =
        static_cast<size_t>(std::llround(static_cast<double>(n) * (1 - o.sparsity[stage])));
    for (size_t w = 0; w < workers; ++w) {
      Vector moved(n);
      for (size_t i = 0; i < n; ++i) {
        const double g = gs[w][i] + o.l2 * p[i];
        u[w][i] = o.mu * u[w][i] + g;
        moved[i] = o.nesterov ? g + o.mu * u[w][i] : u[w][i];
      }
      if (step < o.begin) {
        mean = moved;
        continue;
      }
      for (size_t i = 0; i < n; ++i) v[w][i] += moved[i];
      std::vector<size_t> order(n);
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return std::abs(v[w][a]) > std::abs(v[w][b]); });
      for (size_t j = 0; j < k; ++j) {
        const size_t i = order[j];
        mean[i] += v[w][i] / static_cast<double>(workers);
        u[w][i] = v[w][i] = 0;
      }
    }
    for (size_t i = 0; i < n; ++i) p[i] -= o.lr * mean[i];
  }
};

Tensor tensor_of(const Vector& values) {
  Tensor t(f32, {12, 1400});
  for (size_t i = 0; i < values.size(); ++i) t.data<float>()[i] = static_cast<float>(values[i]);
  return t;
}

void expect_like_reference(const Options& o, int workers, int steps) {
  optim::MomentumOptions options{.lr = o.lr, .mu = o.mu, .nesterov = o.nesterov, .l2 = o.l2};
  if (o.max_norm > 0) options.clip = optim::clip_by_norm(o.max_norm);
  const MakeOptimizer optimizer = momentum(options);
  const Trace got = testing::run(
      {.network = one_layer,
       .optimizer = optimizer,
       .strategies = dgc(
           {{"rampup_begin_step", o.begin}, {"rampup_step", o.rampup}, {"sparsity", o.sparsity}}),
       .workers = workers,
       .last = steps});
  // Makes gradients only; the test updates its parameter.
  Worker alone(one_layer, optimizer, {}, 0, 1, nullptr);
  const Tensor first = alone.get(kWide);
  Reference reference;
  reference.p.assign(first.data<float>().begin(), first.data<float>().end());
  reference.u = reference.v =
      std::vector<Vector>(static_cast<size_t>(workers), Vector(reference.p.size()));
  for (int step = 0; step < steps; ++step) {
    std::vector<Vector> gradients;
    for (int rank = 0; rank < workers; ++rank) {
      alone.set(kWide, tensor_of(reference.p));
      const Tensor g =
          alone.fetch(testing::batch_of(step, {.workers = workers}, rank), "wide.w_0@GRAD");
      gradients.emplace_back(g.data<float>().begin(), g.data<float>().end());
    }
    reference.step(gradients, o, step);
  }
  for (int rank = 0; rank < workers; ++rank) {
    const auto& state = got.state[static_cast<size_t>(rank)];
    const auto r = static_cast<size_t>(rank);
    testing::expect_close(state.at(kWide), tensor_of(reference.p), 1e-5, "parameter");
    testing::expect_close(state.at("wide.w_0_velocity_0"), tensor_of(reference.u[r]), 1e-4, "u");
    testing::expect_close(state.at("wide.w_0__dgc_v__"), tensor_of(reference.v[r]), 1e-4, "v");
  }
}

TEST(Dgc, NWorkersAreThePaper) {
  expect_like_reference({}, 2, 6);
  expect_like_reference({.l2 = 0.01, .max_norm = 0.5, .sparsity = {0.9}}, 3, 5);
  expect_like_reference({.nesterov = true, .begin = 2, .rampup = 4, .sparsity = {0.25, 0.9}}, 2, 8);
}

TEST(Dgc, Learns) {
  Job o{.network = perceptron,
        .optimizer = momentum({.lr = 0.05}),
        .strategies = dgc({{"sparsity", ir::Floats{0.99}}}),
        .last = 60};
  const Trace sparse = testing::run(o);
  o.strategies = {{"data_parallel"}};
  const Trace dense = testing::run(o);
  EXPECT_LT(sparse.losses.back()[0], 0.5f * sparse.losses.front()[0]);
  EXPECT_LT(sparse.losses.back()[0], 1.5f * dense.losses.back()[0] + 0.1f);
}

TEST(Dgc, ResumesInTheMiddleOfTheWarmUp) {
  const testing::TempDir dir;
  const auto strategies = dgc(
      {{"rampup_begin_step", 3}, {"rampup_step", 6}, {"sparsity", ir::Floats{0.75, 0.9375, 0.99}}});
  for (const int stop : {2, 6}) {
    testing::expect_resumes({.network = perceptron,
                             .optimizer = momentum({.lr = 0.05}),
                             .strategies = strategies,
                             .workers = 3},
                            stop, dir / str("run", stop));
  }
}

// The mean of the residuals stands for the same update as before.
TEST(Dgc, AnotherNumberOfWorkersGoesOnFromTheMean) {
  const testing::TempDir dir;
  Job o{.network = perceptron,
        .optimizer = momentum({.lr = 0.05}),
        .strategies = dgc(),
        .workers = 4,
        .last = 5,
        .save = dir / "run"};
  const Trace before = testing::run(o);
  Job next = o;
  next.workers = 2;
  next.first = next.last;
  next.load = o.save;
  next.save = "";
  const Trace after = testing::run(next);
  for (const char* name : {"wide.w_0_velocity_0", "wide.w_0__dgc_v__"}) {
    std::vector<Tensor> all;
    for (const auto& state : before.state) all.push_back(state.at(name));
    for (const auto& state : after.state)
      testing::expect_close(state.at(name), testing::mean_of(all), 1e-7, name);
  }
}

// One worker has Momentum and its velocity, and no residuals: dgc does not act there.
TEST(Dgc, OneWorkerAndSeveralResumeEachOther) {
  const testing::TempDir dir;
  const auto strategies = [](int workers) {
    return workers == 1 ? std::vector<Request>{} : dgc({{"rampup_begin_step", 100}});
  };
  for (const auto& [from, to] : {std::pair{1, 2}, {2, 1}}) {
    Job o{.network = perceptron,
          .optimizer = momentum({.lr = 0.05}),
          .strategies = strategies(from),
          .workers = from,
          .last = 5,
          .save = dir / str("run", from)};
    testing::run(o);
    Job next = o;
    next.strategies = strategies(to);
    next.workers = to;
    next.first = o.last;
    next.last = 9;
    next.load = o.save;
    next.save = "";
    const Trace got = testing::run(next);
    o.last = next.last;
    o.strategies = {};
    o.workers = 1;
    o.save = "";
    const Trace whole = testing::run(o);
    for (size_t s = 0; s < got.losses.size(); ++s) {
      double mean = 0;
      for (const float loss : got.losses[s]) mean += loss / to;
      EXPECT_NEAR(mean, whole.losses[s + 5][0], 1e-5 * std::abs(mean)) << from << " -> " << to;
    }
  }
}

TEST(Dgc, TwiceAndInOtherBucketsIsTheSame) {
  Job o{.network = perceptron,
        .optimizer = momentum({.lr = 0.05}),
        .strategies = dgc(),
        .workers = 3};
  const Trace first = testing::run(o);
  testing::expect_same(testing::run(o), first);
  o.strategies = dgc({{"fuse", false}});
  testing::expect_same(testing::run(o), first);
}

TEST(Dgc, WithRecompute) {
  Job o{.network = perceptron, .optimizer = momentum({.lr = 0.05}), .strategies = dgc()};
  const Trace without = testing::run(o);
  ir::Program main, startup;
  ir::Builder b(main, startup);
  (void)perceptron(b);
  o.strategies.push_back(
      {"recompute", {{"checkpoints", ir::Strings{main.ops().front().out("out").front()}}}});
  testing::expect_same(testing::run(o), without);
}

// A step with a bad gradient on one worker changes nothing on any.
TEST(Dgc, WithAmp) {
  auto strategies = dgc();
  strategies.push_back({"amp", {{"init_loss_scaling", 1024.0}}});
  const testing::TrainOptions data{.workers = 2};
  testing::run_workers(2, [&](int rank, const testing::SharedGroups& groups) {
    Worker worker(perceptron, momentum({.lr = 0.05}), strategies, rank, 2, groups);
    worker.step(testing::batch_of(0, data, rank));
    worker.step(testing::batch_of(1, data, rank));
    const auto before = worker.state();
    const auto batch = testing::batch_of(2, data, rank);
    worker.step(rank == 1 ? testing::bad_batch(batch) : batch);
    for (const auto& [name, value] : worker.state())
      if (name != "@step@" && !name.starts_with("num_"))
        testing::expect_close(value, before.at(name), 0, str(name, " of worker ", rank));
    worker.step(testing::batch_of(3, data, rank));
    const Tensor velocity = worker.get("wide.w_0_velocity_0");  // a copy
    const auto u = velocity.data<float>();
    const auto old = before.at("wide.w_0_velocity_0").data<float>();
    EXPECT_FALSE(std::equal(u.begin(), u.end(), old.begin()));
  });
}

// What is compressed is the gradient without the scale of the loss.
TEST(Dgc, WithAmpInF32IsF32) {
  Job o{.network = perceptron, .optimizer = momentum({.lr = 0.05}), .strategies = dgc()};
  const Trace without = testing::run(o);
  o.strategies.push_back(
      {"amp", {{"init_loss_scaling", 1024.0}, {"custom_black_list", ir::Strings{"fc"}}}});
  const Trace with = testing::run(o);
  EXPECT_EQ(with.losses, without.losses);
  for (const auto& [name, value] : without.state[1])
    testing::expect_close(with.state[1].at(name), value, 0, name);
}

TEST(Dgc, TellsWhereItHasNothingToDo) {
  const auto log_of = [](ir::Var (*net)(ir::Builder&)) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var loss = net(b);
    ::testing::internal::CaptureStderr();
    testing::minimize_for_worker(loss, *momentum({.lr = 0.1})(), dgc({}), 0, 2);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string small = log_of([](ir::Builder& b) {
    return nn::mean(nn::fc(b.data("x", f32, {-1, 4}), {.size = 3}));
  });
  EXPECT_TRUE(testing::contains(small, "dgc] nothing is compressed: none of the 2 parameters"));
  EXPECT_TRUE(testing::contains(log_of(perceptron), " gradients are compressed; the others"));
}

TEST(Dgc, RefusesWhatMakesNoSense) {
  using testing::contains;
  using testing::error_of;
  const auto refusal = [](const MakeOptimizer& make, ir::Attrs options = {}) {
    return error_of([&] {
      ir::Program main, startup;
      ir::Builder b(main, startup);
      const ir::Var loss = perceptron(b);
      const auto optimizer = make();
      testing::minimize_for_worker(loss, *optimizer, dgc(std::move(options)), 0, 2);
    });
  };
  // Also where nothing would be compressed: one worker, or no large parameter.
  for (const int workers : {1, 2}) {
    fleet::DistributedStrategy s;
    s.dgc = true;
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var loss = nn::mean(nn::fc(b.data("x", f32, {-1, 4}), {.size = 3}));
    const auto refused = [&](std::shared_ptr<optim::Optimizer> optimizer) {
      return error_of([&] {
        fleet::DistributedOptimizer(std::move(optimizer), s, fleet::mesh_of(s, workers, 0))
            .minimize(loss);
      });
    };
    EXPECT_TRUE(contains(refused(std::make_shared<optim::Sgd>()),
                         "is updated by sgd; dgc corrects the momentum"));
    optim::MomentumOptions by_value{.clip = optim::clip_by_value(-1, 1)};
    EXPECT_TRUE(contains(refused(std::make_shared<optim::Momentum>(by_value)),
                         "goes through clip; only ClipGradByNorm"));
  }
  const auto good = momentum({.lr = 0.1});
  EXPECT_TRUE(contains(refusal([] { return std::make_unique<optim::Sgd>(); }),
                       "is updated by sgd; dgc corrects the momentum"));
  EXPECT_TRUE(contains(refusal([] { return std::make_unique<optim::Adam>(); }), "by adam"));
  EXPECT_TRUE(contains(refusal(momentum({.clip = optim::clip_by_global_norm(1)})), "global norm"));
  EXPECT_TRUE(contains(refusal(momentum({.clip = optim::clip_by_value(-1, 1)})), "ClipGradByNorm"));
  EXPECT_TRUE(contains(refusal(good, {{"sparsity", ir::Floats{0.5, 1.0}}}),
                       "dgc_configs.sparsity has the value 1"));
  EXPECT_TRUE(contains(refusal(good, {{"sparsity", ir::Floats{-0.1}}}), "must be in [0, 1)"));
  EXPECT_TRUE(contains(refusal(good, {{"rampup_step", 0}}), "'rampup_step' is 0"));
  EXPECT_TRUE(contains(refusal(good, {{"rampup_begin_step", -1}}), "'rampup_begin_step' is -1"));
  fleet::DistributedStrategy s;
  s.dgc = true;
  s.dgc_configs.sparsity = {1.5};
  for (const int workers : {1, 2})
    EXPECT_TRUE(contains(error_of([&] { fleet::requests_of(s, fleet::mesh_of(s, workers, 0)); }),
                         "dgc_configs.sparsity"));
}

TEST(Dgc, FollowsFromTheSettings) {
  fleet::DistributedStrategy s;
  s.dgc = true;
  s.dgc_configs.rampup_step = 7;
  const auto requests = fleet::requests_of(s, fleet::mesh_of(s, 2, 0));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].name, "dgc");
  EXPECT_EQ(requests[1].options.at("rampup_step").as<int64_t>(), 7);
  EXPECT_FALSE(requests[1].idle);
  EXPECT_TRUE(fleet::requests_of(s, fleet::mesh_of(s, 1, 0)).at(0).idle);  // nobody to send to
}

}  // namespace
}  // namespace fleetx::strategies::dgc_test
