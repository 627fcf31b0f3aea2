#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "fleetx/fleet/server_tables.h"
#include "fleetx/fleet/worker_servers.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/schedule.h"
#include "fleetx/ps/server.h"
#include "fleetx/strategies/parameter_server.h"
#include "fleetx/train/expected_rows.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::parameter_server_test {
namespace {

using testing::expect_close;
using testing::expect_error;

std::vector<std::string> ops_of(const ir::Program& program, ir::Role role) {
  std::vector<std::string> out;
  for (const ir::Op& op : program.ops())
    if (op.role == role) out.push_back(ir::to_text(op));
  return out;
}

using Lines = std::vector<std::string>;

// A table, a dense layer, their updates.
constexpr const char* kText = R"(program
data ids : i64[-1]
data y : f32[-1,2]
state lr : f32[1]
state @step@ : i64[1]
param t : f32[10,2]
param w : f32[2,2]
state t_velocity : f32[10,2]
state w_velocity : f32[2,2]
var e : f32[-1,2]
var h : f32[-1,2]
var loss : f32[1]
var dloss : f32[1]
var dh : f32[-1,2]
var dw : f32[2,2]
var de : f32[-1,2]
var dt : sparse f32[10,2]

forward:
e = embedding(ids, t) {sparse=true}
h = matmul(e, w)
loss = mean(h)

backward:
dloss = fill() {shape=[1], value=1.0}
dh = fill_like(h) {value=0.5}
dw = matmul(e, dh) {transpose_x=true}
de = matmul(dh, w) {transpose_y=true}
dt = embedding_grad(ids, de) {sparse=true, shape=[10, 2]}

update:
[w], [w_velocity] = momentum([w], [dw], [w_velocity], lr, _)
[t], [t_velocity] = momentum([t], [dt], [t_velocity], lr, _)
@step@ = increment(@step@)

training:
loss(loss, dloss)
step(@step@)
parameter(w, dw, lr)
parameter(t, dt, lr)
)";
constexpr const char* kStartup = R"(program
param t : f32[10,2]
param w : f32[2,2]
state t_velocity : f32[10,2]
state w_velocity : f32[2,2]
state lr : f32[1]
state @step@ : i64[1]

forward:
t = uniform() {shape=[10, 2]}
w = uniform() {shape=[2, 2]}
t_velocity = fill() {shape=[10, 2]}
w_velocity = fill() {shape=[2, 2]}
lr = fill() {shape=[1], value=0.1}
@step@ = fill() {shape=[1], dtype="i64"}
)";

struct Applied {
  ir::Program main = ir::parse_text(kText), startup = ir::parse_text(kStartup);
  explicit Applied(const ir::Attrs& options) {
    ResolvedStrategies resolved({{"parameter_server", options}}, {});
    resolved.validate(main);
    resolved.apply(Phase::kUpdates, {main, startup});
  }
};

TEST(ParameterServer, UpdatesBecomePushAndPull) {
  const Applied a(ir::Attrs{});
  EXPECT_EQ(ops_of(a.main, ir::Role::kForward),
            (Lines{"[e] = ps_pull_rows([ids]) {padding=[-1], tables=[\"t\"], widths=[2]}",
                   "h = matmul(e, w)", "loss = mean(h)"}));
  EXPECT_EQ(ops_of(a.main, ir::Role::kBackward).back(),
            "dt = embedding_grad(ids, de) {any_id=true, shape=[10,2], sparse=true}");
  EXPECT_EQ(ops_of(a.main, ir::Role::kUpdate),
            (Lines{"@step@ = increment(@step@)",
                   "ps_push([dw, dt], [lr, lr], _) {names=[\"w\",\"t\"]}", "[w] = ps_pull([w])"}));
  EXPECT_EQ(ops_of(a.startup, ir::Role::kForward),
            (Lines{"w = uniform(_) {shape=[2,2]}", "lr = fill() {shape=[1], value=0.1}",
                   "@step@ = fill() {dtype=\"i64\", shape=[1]}", "[w] = ps_init([w])"}));
  EXPECT_EQ(a.main.training().parameters.size(), 1u);
  EXPECT_EQ(a.main.find("w_velocity"), nullptr);
  EXPECT_TRUE(a.main.var("t").is_distributed);
}

TEST(ParameterServer, TablesWithStatisticsAreCounted) {
  const auto apply = [](const std::string& text) {
    ir::Program main = ir::parse_text(text), startup = ir::parse_text(kStartup);
    ir::Rewriter(main).edit_var("t").attrs = {{"show", "y_show"}, {"click", "y_click"}};
    ResolvedStrategies resolved({{"parameter_server", ir::Attrs{}}}, {});
    resolved.validate(main);
    resolved.apply(Phase::kUpdates, {main, startup});
    return ops_of(main, ir::Role::kUpdate);
  };
  std::string text = kText;
  expect_error(Error::Kind::kInvalidArgument, {"table 't'", "'y_show'", "ShowClickEntry"},
               [&] { apply(text); });
  text.insert(text.find("data y"), "data y_show : f32[-1]\ndata y_click : i64[-1]\n");
  EXPECT_EQ(apply(text)[1], "ps_count(ids, y_show, y_click, _) {table=\"t\"}");
}

TEST(ParameterServer, GeoKeepsUpdatesAndExchanges) {
  const Applied a(ir::Attrs{{"mode", "geo"}, {"k_steps", 25}});
  const Lines update = ops_of(a.main, ir::Role::kUpdate);
  ASSERT_EQ(update.size(), 8u);
  EXPECT_TRUE(update[0].starts_with("[w], [w_velocity] = momentum")) << update[0];
  EXPECT_EQ(update[5], "geo_rest = elementwise_mod(@step@, geo_k)");
  EXPECT_EQ(update[6], "geo_due = equal(geo_rest, geo_zero)");
  EXPECT_EQ(update[7],
            "[w, t], [w@BASE, t@BASE] = ps_exchange([w, t], [w@BASE, t@BASE]) if geo_due");
  EXPECT_EQ(ops_of(a.startup, ir::Role::kForward).back(), "t@BASE = assign(t)");
}

TEST(ParameterServer, GeoKeepsDeclaredTablesById) {
  std::string text = kText;
  text.replace(text.find("param t : f32[10,2]"), 19, "param t : f32[10,2] is_distributed");
  const auto apply = [&](const std::string& first) {
    ir::Program main = ir::parse_text(text), startup = ir::parse_text(first);
    ResolvedStrategies resolved({{"parameter_server", {{"mode", "geo"}, {"k_steps", 4}}}}, {});
    resolved.validate(main);
    resolved.apply(Phase::kUpdates, {main, startup});
    return std::pair(ops_of(main, ir::Role::kForward), ops_of(main, ir::Role::kUpdate));
  };
  const auto [forward, update] = apply(kStartup);
  EXPECT_TRUE(forward[0].starts_with("[e] = ps_pull_rows([ids])")) << forward[0];
  EXPECT_TRUE(update[0].starts_with("[w], [w_velocity] = momentum")) << update[0];
  EXPECT_EQ(update[2], "ps_push([dt], [lr], _) {names=[\"t\"]}");
  EXPECT_EQ(update.back(), "[w], [w@BASE] = ps_exchange([w], [w@BASE]) if geo_due");
  std::string other = kStartup;
  other.replace(other.find("t = uniform() {shape=[10, 2]}"), 29, "t = assign(t_velocity)");
  expect_error(Error::Kind::kInvalidArgument, {"geo", "'t'", "initializer"}, [&] { apply(other); });
}

// Without servers: only the declared table leaves the program.
TEST(ParameterServer, AloneKeepsDeclaredTables) {
  const auto apply = [](ir::Program& main, ir::Program& startup) {
    ResolvedStrategies resolved({{"parameter_server", {{"mode", "alone"}}}}, {});
    resolved.validate(main);
    resolved.apply(Phase::kUpdates, {main, startup});
  };
  std::string text = kText;
  text.replace(text.find("param t : f32[10,2]"), 19, "param t : f32[10,2] is_distributed");
  ir::Program main = ir::parse_text(text), startup = ir::parse_text(kStartup);
  apply(main, startup);
  EXPECT_EQ(ops_of(main, ir::Role::kForward).front(),
            "[e] = ps_pull_rows([ids]) {padding=[-1], tables=[\"t\"], widths=[2]}");
  const Lines update = ops_of(main, ir::Role::kUpdate);
  ASSERT_EQ(update.size(), 3u);
  EXPECT_TRUE(update[0].starts_with("[w], [w_velocity] = momentum")) << update[0];
  EXPECT_EQ(update[2], "ps_push([dt], [lr], _) {names=[\"t\"]}");
  EXPECT_EQ(main.find("t_velocity"), nullptr);
  EXPECT_EQ(startup.find("t"), nullptr);
  EXPECT_NE(startup.find("w_velocity"), nullptr);

  // One that is not declared, and one whose first values are no function of the row.
  ir::Program plain = ir::parse_text(kText), first = ir::parse_text(kStartup);
  apply(plain, first);
  EXPECT_EQ(ir::to_text(plain), ir::to_text(ir::parse_text(kText)));
  std::string given = kStartup;
  given.replace(given.find("t = uniform() {shape=[10, 2]}"), 29, "t = assign(t_velocity)");
  ir::Program declared = ir::parse_text(text), values = ir::parse_text(given);
  apply(declared, values);
  EXPECT_EQ(ir::to_text(declared), ir::to_text(ir::parse_text(text)));
  EXPECT_TRUE(strategies_without_tables().contains("amp"));
}

TEST(ParameterServer, RefusesWhatCannotWork) {
  expect_error(Error::Kind::kInvalidArgument, {"mode is 'later'", "half_async"}, [] {
    Applied a(ir::Attrs{{"mode", "later"}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"k_steps is 5", "geo"}, [] {
    Applied a(ir::Attrs{{"k_steps", 5}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"k_steps is 0", "geo"}, [] {
    Applied a(ir::Attrs{{"mode", "geo"}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"data_parallel", "without servers"}, [] {
    ResolvedStrategies({{"parameter_server"}, {"data_parallel"}}, {.mesh = Mesh({{"dp", 2}}, 0)});
  });
}

TEST(ParameterServer, ATableIsReadByLookupsOnly) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var ids = b.data("ids", i64, {-1});
  const ir::Var e = nn::embedding(ids, {.rows = 5, .dim = 2, .is_distributed = true, .name = "t"});
  const ir::Var tied = nn::matmul(e, b.var("t.w_0"), {.transpose_y = true});
  const ir::Var loss = nn::mean(tied);
  optim::Sgd sgd;
  ResolvedStrategies resolved({{"parameter_server"}}, {});
  expect_error(Error::Kind::kInvalidArgument, {"matmul", "'t.w_0'", "is_distributed"}, [&] {
    minimize(
        {main, startup}, resolved, [&] { (void)sgd.backward(loss); },
        [&] { sgd.apply_gradients(autograd::trained(b)); });
  });
}

// ---- numbers: real servers, workers are threads that share every batch ----

struct Job {
  int workers = 1, servers = 1;
  fleet::ServerConfig config = {};
  std::string optimizer = "sgd";
  ir::Attrs options = {{"lr", 0.1}};
  double clip = 0;  // of the global norm
  int steps = 20;
  int64_t batch = 24;
  bool tells_ahead = false;  // the rows of the next batch
  bool declared = false;     // the table is one of sparse_embedding
};

struct Learned {
  std::vector<double> losses;           // mean of the workers
  std::map<std::string, Tensor> state;  // of worker 0: dense parameters
  Tensor rows;                          // of the table, all ids
};

constexpr int64_t kIds = 40;

ir::Var network(ir::Builder& b, bool declared = false) {
  const ir::Var ids = b.data("ids", i64, {-1, 3}), y = b.data("y", f32, {-1, 1});
  const ir::Var e = nn::embedding(ids, {.rows = kIds,
                                        .dim = 4,
                                        .sparse = true,
                                        .is_distributed = declared,
                                        .weight_attr = {.init = nn::init::uniform(-0.5, 0.5)},
                                        .name = "table"});
  const ir::Var h = nn::fc(nn::reshape(e, {0, 12}), {.size = 8, .act = "tanh", .name = "a"});
  return nn::mean(nn::square(nn::fc(h, {.size = 1, .name = "b"}) - y));
}

runtime::Feeds feeds_of(int step, const Job& job, int worker) {
  const Tensor ids = testing::random_ints({job.batch, 3}, 0, kIds, static_cast<uint64_t>(step) + 7);
  Tensor y(f32, {job.batch, 1});
  for (int64_t i = 0; i < job.batch; ++i)
    y.data<float>()[i] = static_cast<float>(ids.data<int64_t>()[3 * i] % 5) * 0.3f;
  const int64_t share = job.batch / job.workers;
  return {{"ids", testing::rows_of(ids, worker * share, share)},
          {"y", testing::rows_of(y, worker * share, share)}};
}

Learned train(const Job& job) {
  std::map<std::string, ps::UpdateRulePtr> own_rules;
  // The same program in every process.
  const auto make = [&](ir::Program& main, ir::Program& startup, std::string& loss) {
    ir::Builder b(main, startup);
    const ir::Var l = network(b, job.declared);
    loss = l.name();
    startup.set_seed(11);
    const auto optimizer =
        optim::make(job.optimizer, job.options,
                    {.clip = job.clip > 0 ? optim::clip_by_global_norm(job.clip) : optim::Clip{}});
    ResolvedStrategies resolved(
        {{"parameter_server", {{"mode", job.config.mode}, {"k_steps", job.config.k_steps}}}}, {});
    ps::JobSpec spec;
    minimize(
        {main, startup}, resolved, [&] { (void)optimizer->backward(l); },
        [&] {
          optimizer->apply_gradients(autograd::trained(b));
          own_rules = fleet::own_rules(main, startup, job.config);
          spec = fleet::server_tables(main, startup, job.config, job.workers, job.servers);
        });
    return spec;
  };
  ir::Program main, startup;
  std::string loss;
  const ps::JobSpec spec = make(main, startup, loss);
  std::vector<std::unique_ptr<ps::Server>> servers;
  std::vector<std::thread> threads;
  std::vector<std::string> endpoints;
  for (int s = 0; s < job.servers; ++s) {
    servers.push_back(std::make_unique<ps::Server>(
        ps::ServerOptions{.job = spec, .index = s, .endpoint = "127.0.0.1:0", .secret = "ab"}));
    endpoints.push_back(servers.back()->endpoint());
    threads.emplace_back([&server = *servers.back()] { server.run(); });
  }
  std::vector<Learned> all(static_cast<size_t>(job.workers));
  std::vector<std::future<void>> workers;
  for (int w = 0; w < job.workers; ++w)
    workers.push_back(std::async(std::launch::async, [&, w] {
      Learned& mine = all[static_cast<size_t>(w)];
      const auto connection = std::make_shared<fleet::WorkerServers>(
          spec, fleet::WorkerServers::Options{.gives_first_values = w == 0,
                                              .waits_for_pushes = job.config.mode == "half_async",
                                              .own_rules = own_rules});
      connection->connect({.job = spec, .worker = w, .servers = endpoints, .secret = "ab"});
      const kernel::ThreadServers here(connection);
      const ir::Program own_main = main;
      ir::Program own_startup = startup;
      own_startup.set_seed(static_cast<uint64_t>(11 + w));  // the first worker's values count
      runtime::Scope scope;
      runtime::Executor exe;
      exe.run(own_startup, scope);
      {
        train::ExpectedRows expected(own_main);
        ASSERT_TRUE(!job.tells_ahead || expected.any());
        if (job.tells_ahead) expected.tell(feeds_of(0, job, w));
        for (int step = 0; step < job.steps; ++step) {
          if (job.tells_ahead && step + 1 < job.steps) expected.tell(feeds_of(step + 1, job, w));
          mine.losses.push_back(
              exe.run(own_main, scope, feeds_of(step, job, w), {loss})[0].item<float>());
        }
      }
      if (w == 0) {
        for (const ps::DenseSpec& table : spec.dense)
          for (const ps::DenseParam& p : table.params)
            mine.state.emplace(p.name, scope.get(p.name));
        if (!spec.sparse.empty()) {
          std::vector<int64_t> ids(kIds);
          for (int64_t i = 0; i < kIds; ++i) ids[static_cast<size_t>(i)] = i;
          mine.rows = Tensor(f32, {kIds, 4});
          const kernel::Servers::Lookup lookup{0, ids.data(), kIds,
                                               static_cast<float*>(mine.rows.raw())};
          connection->pull_rows({&lookup, 1}, true);
        }
      }
      connection->leave();
    }));
  for (auto& worker : workers) worker.get();
  for (std::thread& thread : threads) thread.join();
  Learned result = std::move(all[0]);
  for (size_t w = 1; w < all.size(); ++w)
    for (size_t i = 0; i < result.losses.size(); ++i) result.losses[i] += all[w].losses[i];
  for (double& l : result.losses) l /= job.workers;
  return result;
}

TEST(ParameterServer, SyncWorkersTogetherLearnWhatOneWould) {
  const std::vector<std::pair<std::string, ir::Attrs>> optimizers = {
      {"sgd", {{"lr", 0.1}, {"l2", 0.01}}},
      {"momentum", {{"lr", 0.05}, {"mu", 0.9}}},
      {"adam", {{"lr", 0.01}}},
      {"adagrad", {{"lr", 0.1}}}};
  for (const auto& [optimizer, options] : optimizers) {
    const Job one{.optimizer = optimizer, .options = options};
    const Learned alone = train(one);
    EXPECT_LT(alone.losses.back(), alone.losses.front()) << optimizer;
    for (const auto& [workers, servers] : {std::pair(2, 1), std::pair(3, 2)}) {
      Job many = one;
      many.workers = workers;
      many.servers = servers;
      const Learned together = train(many);
      const std::string what = str(optimizer, ", ", workers, " workers, ", servers, " servers");
      ASSERT_EQ(together.state.size(), alone.state.size());
      for (const auto& [name, value] : together.state)
        expect_close(value, alone.state.at(name), 1e-6, what + ", " + name);
      expect_close(together.rows, alone.rows, 1e-6, what + ", rows");
      for (size_t i = 0; i < alone.losses.size(); ++i)
        EXPECT_NEAR(together.losses[i], alone.losses[i], 1e-5) << what << ", step " << i;
    }
  }
}

// One process whose program has no servers is the reference. (Clipping multiplies before the
// gradient travels, not in the update: the last bit may differ.)
TEST(ParameterServer, OneWorkerLearnsWhatAProcessWithoutServersWould) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var loss = network(b);
  startup.set_seed(11);
  const Job job{.optimizer = "adam", .options = {{"lr", 0.01}}, .clip = 0.5};
  optim::make(job.optimizer, job.options, {.clip = optim::clip_by_global_norm(job.clip)})
      ->minimize(loss);
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  // Servers make rows by their own formula; begin with theirs.
  Job nothing = job;
  nothing.steps = 0;
  scope.set("table.w_0", train(nothing).rows);
  std::vector<double> losses;
  for (int step = 0; step < job.steps; ++step)
    losses.push_back(exe.run(main, scope, feeds_of(step, job, 0), {loss.name()})[0].item<float>());
  const Learned learned = train(job);
  ASSERT_EQ(learned.losses.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(learned.losses[i], losses[i], 1e-6);
  for (const auto& [name, value] : learned.state) expect_close(value, scope.get(name), 1e-6, name);
  expect_close(learned.rows, scope.get("table.w_0"), 1e-6, "rows");
}

// Geo with a table that servers keep by id: the worker has the rows that it looked up. Alone with
// its servers it learns what the servers would, to the last exchange and beyond it.
TEST(ParameterServer, GeoTrainsRowsByIdOnWorkers) {
  for (const char* optimizer : {"sgd", "adam"}) {
    const Job sync{.optimizer = optimizer, .options = {{"lr", 0.02}}, .declared = true};
    const Learned expected = train(sync);
    for (const int64_t k : {1, 3, 50}) {
      Job geo = sync;
      geo.servers = 2;
      geo.config = {.mode = "geo", .k_steps = static_cast<int>(k)};
      const Learned learned = train(geo);
      for (size_t i = 0; i < expected.losses.size(); ++i)
        EXPECT_NEAR(learned.losses[i], expected.losses[i], 1e-5) << optimizer << ", k = " << k;
      expect_close(learned.rows, expected.rows, 1e-5, str(optimizer, ", k = ", k));
    }
  }
  const Learned many = train({.workers = 3,
                              .servers = 2,
                              .config = {.mode = "geo", .k_steps = 4},
                              .steps = 60,
                              .declared = true});
  EXPECT_LT(many.losses.back(), 0.7 * many.losses.front());
}

TEST(ParameterServer, OtherModesLearn) {
  for (const char* mode : {"async", "half_async", "geo"}) {
    Job job{.workers = 2,
            .servers = 2,
            .config = {.mode = mode, .k_steps = std::string(mode) == "geo" ? 4 : 0},
            .steps = 60};
    const Learned learned = train(job);
    EXPECT_LT(learned.losses.back(), 0.7 * learned.losses.front()) << mode;
  }
}

TEST(ParameterServer, RowsThatWereToldAheadAreTheSame) {
  for (const char* mode : {"sync", "half_async"}) {
    Job job{.workers = std::string(mode) == "sync" ? 2 : 1,
            .servers = 2,
            .config = {.mode = mode},
            .optimizer = "adagrad"};
    const Learned one_by_one = train(job);
    job.tells_ahead = true;
    const Learned ahead = train(job);
    EXPECT_EQ(ahead.losses, one_by_one.losses) << mode;
    for (const auto& [name, value] : ahead.state)
      expect_close(value, one_by_one.state.at(name), 0, name);
    expect_close(ahead.rows, one_by_one.rows, 0, "rows");
  }
  // Async: they miss the step's own update, but none is lost.
  const Learned learned = train({.config = {.mode = "async"}, .steps = 60, .tells_ahead = true});
  EXPECT_LT(learned.losses.back(), 0.7 * learned.losses.front());
}

}  // namespace
}  // namespace fleetx::strategies::parameter_server_test
