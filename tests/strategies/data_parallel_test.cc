#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/models/resnet.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/passes/pass.h"
#include "fleetx/strategies/buckets.h"
#include "tests/strategies/parallel_training.h"

namespace fleetx::strategies::data_parallel_test {
namespace {

using testing::minimize_for_worker;
using testing::Training;

constexpr const char* kText = R"(program
data x : f32[-1,4]
param w1 : f32[4,3]
param w2 : f32[3,1]
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

std::vector<std::string> lines_of(const ir::Program& program, ir::Role role) {
  std::vector<std::string> lines;
  for (const ir::Op& op : program.ops())
    if (op.role == role) lines.push_back(ir::to_text(op));
  return lines;
}

// The optimizer's part of kText.
void append_updates(ir::Program& main) {
  ir::Rewriter rw(main);
  for (const char* w : {"w2", "w1"})
    rw.append({.type = "sgd",
               .inputs = {{"param", {w}}, {"grad", {str("d", w)}}, {"lr", {"lr"}}},
               .outputs = {{"param_out", {w}}},
               .role = ir::Role::kUpdate});
  rw.edit_training().step = "@step@";
  for (auto& p : rw.edit_training().parameters) p.learning_rate = "lr";
}

// A start-up program that makes the state of kText.
constexpr const char* kStartup = R"(program
param w1 : f32[4,3]
param w2 : f32[3,1]
state w1_moment : f32[4,3]
state counts : f32[2] per_rank(dp, sum)

forward:
w1 = fill() {shape=[4,3], value=0.1}
w2 = fill() {shape=[3,1], value=0.5}
w1_moment = fill() {shape=[4,3]}
counts = fill() {shape=[2]}
)";

TEST(DataParallel, ProgramText) {
  ir::Program main = ir::parse_text(kText), startup = ir::parse_text(kStartup);
  // No fusion: each layer has a bucket of its own.
  ResolvedStrategies resolved({{"data_parallel", {{"fuse", false}}}},
                              {.mesh = Mesh({{"dp", 2}}, 1)});
  EXPECT_EQ(resolved.groups(), std::vector<std::string>{"dp"});
  strategies::minimize(
      {main, startup}, resolved, [] {}, [&] { append_updates(main); });
  EXPECT_EQ(
      lines_of(main, ir::Role::kBackward),
      (std::vector<std::string>{
          R"(dloss = assign("@worker_weight@"))", "dy = mean_grad(y, dloss)",
          "dh, dw2, _ = fc_grad(h, w2, _, _, dy)",
          R"([dw2], all_reduce_ticket = all_reduce_start([dw2], @step@) {group="dp", op="average"})",
          "_, dw1, _ = fc_grad(x, w1, _, _, dh)",
          R"([dw1], all_reduce_ticket_1 = all_reduce_start([dw1], @step@) {group="dp", op="average"})",
          R"([dw2] = all_reduce_wait([dw2], all_reduce_ticket) {group="dp", op="average"})",
          R"([dw1] = all_reduce_wait([dw1], all_reduce_ticket_1) {group="dp", op="average"})"}));
  EXPECT_EQ(lines_of(main, ir::Role::kUpdate),
            (std::vector<std::string>{"[w2] = sgd([w2], [dw2], lr, _)",
                                      "[w1] = sgd([w1], [dw1], lr, _)"}));
  // The weight of a worker is made anew at every start, counts stay those of their rank, and zeros
  // are zeros everywhere.
  EXPECT_TRUE(main.var("@worker_weight@").placement.is_transient());
  EXPECT_EQ(lines_of(startup, ir::Role::kForward),
            (std::vector<std::string>{
                "w1 = fill() {shape=[4,3], value=0.1}", "w2 = fill() {shape=[3,1], value=0.5}",
                "w1_moment = fill() {shape=[4,3]}", "counts = fill() {shape=[2]}",
                R"("@worker_weight@" = fill() {shape=[1], value=1.0})",
                R"([w1, w2] = broadcast([w1, w2]) {group="dp"})"}));
}

TEST(DataParallel, TheProgramOfAllWorkersIsTheSame) {
  std::vector<std::string> texts;
  for (const int rank : {0, 1}) {
    ir::Program main = ir::parse_text(kText), startup;
    ResolvedStrategies resolved({{"data_parallel"}}, {.mesh = Mesh({{"dp", 2}}, rank)});
    resolved.apply(Phase::kGradients, {main, startup});
    texts.push_back(ir::to_text(main));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(DataParallel, StateOfAWorkersOwnBatchIsPerRank) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 8});
  const ir::Var y = nn::batch_norm(nn::fc(x, {.size = 4}), {.name = "norm"});
  const ir::Var seen = b.state("seen", i64, {1});
  b.op("increment", {{"x", seen}}, {{"value", 1.0}}, {{"out", seen}});
  optim::Momentum momentum;
  minimize_for_worker(nn::mean(y), momentum, {{"data_parallel"}}, 0, 2);
  size_t statistics = 0;
  for (const ir::VarInfo* v : main.vars()) {
    if (!v->persistable || v->name == "@worker_weight@") continue;
    const bool is_statistic = v->placement.is_per_rank();
    statistics += is_statistic ? 1 : 0;
    EXPECT_EQ(startup.var(v->name).placement, v->placement) << v->name;
    EXPECT_EQ(str(v->placement), is_statistic ? "per_rank(dp, average)" : "replicated") << v->name;
    EXPECT_FALSE(is_statistic && (v->is_parameter || v->name == "seen")) << v->name;
  }
  EXPECT_EQ(statistics, 2u);
}

TEST(DataParallel, ParametersOfOneRankAreLeftAlone) {
  ir::Program main = ir::parse_text(kText), startup;
  ir::Rewriter(main).edit_var("w1").placement =
      ir::Placement::per_rank("dp", ir::Placement::Resize::kReset);
  ResolvedStrategies resolved({{"data_parallel"}}, {.mesh = Mesh({{"dp", 2}}, 0)});
  resolved.apply(Phase::kGradients, {main, startup});
  for (const ir::Op& op : main.ops()) {
    if (op.type() != "all_reduce_start") continue;
    EXPECT_EQ(op.in("xs"), ir::Names{"dw2"});
  }
}

TEST(DataParallel, RefusesWhatMakesNoSense) {
  const auto apply = [](const Request& request, const StrategyContext& context,
                        const std::string& text = kText) {
    ir::Program main = ir::parse_text(text), startup;
    ResolvedStrategies resolved({request}, context);
    strategies::minimize(
        {main, startup}, resolved, [] {}, [&] { append_updates(main); });
  };
  const StrategyContext two{.mesh = Mesh({{"dp", 2}}, 0)};
  EXPECT_NO_THROW(apply({"data_parallel"}, two));
  EXPECT_THROW(apply({"data_parallel"}, {}), Error);  // no such axis
  EXPECT_THROW(apply({"data_parallel", {{"fuse_size_in_MB", 0}}}, two), Error);
  EXPECT_THROW(apply({"data_parallel", {{"fuse_count", -1}}}, two), Error);
  EXPECT_THROW(apply({"data_parallel"}, two,
                     "program\ndata x : f32[4]\nvar a : f32[4]\n\nforward:\na = scale(x)\n"),
               Error);
}

TEST(DataParallel, ResNet50sGradientsBecomeFiveCalls) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const auto net = models::resnet(b.data("x", f32, {-1, 3, 224, 224}), {.depth = 50});
  const ir::Var loss = nn::mean(nn::softmax_cross_entropy(net.logits, b.data("y", i64, {-1, 1})));
  optim::Momentum momentum({.lr = 0.1});
  minimize_for_worker(loss, momentum, {{"data_parallel"}}, 0, 2);
  size_t calls = 0, gradients = 0;
  for (const ir::Op& op : main.ops()) {
    if (op.type() != "all_reduce_start") continue;
    ++calls;
    gradients += op.in("xs").size();
  }
  EXPECT_EQ(gradients, 161u);
  EXPECT_EQ(calls, 5u);
}

// As the program is planned: what has arrived is applied while later buckets travel.
TEST(DataParallel, UpdatesDoNotWaitForLaterBuckets) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  ir::Var h = b.data("x", f32, {8, 1100});
  for (int layer = 0; layer < 3; ++layer) h = nn::fc(h, {.size = 1100, .act = "tanh"});
  optim::Momentum momentum({.lr = 0.1});
  minimize_for_worker(nn::mean(h), momentum, {{"data_parallel", {{"fuse_size_in_MB", 4}}}}, 0, 2);
  passes::run_local_passes(main, {});
  std::vector<std::string> order;
  for (const ir::Op& op : main.ops())
    if (op.type() == "all_reduce_wait" || op.type() == "momentum") order.push_back(op.type());
  // A sweep takes 4 MB, so that the last bias is left for one of its own.
  EXPECT_EQ(order,
            (std::vector<std::string>{"all_reduce_wait", "momentum", "all_reduce_wait", "momentum",
                                      "all_reduce_wait", "momentum", "momentum"}));
}

TEST(Buckets, KeepLayersTogetherAndTypesApart) {
  const size_t mib = 1 << 20;
  const auto names = [&](const std::vector<Gradient>& gradients, const BucketLimits& limits) {
    std::vector<std::string> out;
    for (const auto& bucket : make_buckets(gradients, limits)) {
      std::string text;
      for (const Gradient& g : bucket) text += g.name;
      out.push_back(text);
    }
    return out;
  };
  using Texts = std::vector<std::string>;
  const std::vector<Gradient> four{
      {"a", "l1.w", 2 * mib}, {"b", "l2.w", mib}, {"c", "l1.b", 2 * mib}, {"d", "l3.w", mib, f64}};
  EXPECT_EQ(names(four, {.first_bytes = 32 * mib}), (Texts{"acb", "d"}));
  EXPECT_EQ(names(four, {.bytes = 4 * mib}), (Texts{"ac", "b", "d"}));
  EXPECT_EQ(names(four, {.first_bytes = 32 * mib, .count = 1}), (Texts{"ac", "b", "d"}));
  EXPECT_EQ(names({}, {}), Texts{});
  // The first and the last are small, if layers are; what is left over joins the last.
  std::vector<Gradient> many;
  for (int i = 0; i < 20; ++i)
    many.push_back({std::string(1, 'a' + i), str("l", i, ".w"), 4 * mib});
  EXPECT_EQ(names(many, {}), (Texts{"a", "bcdefghi", "jklmnopq", "rs", "t"}));
  many.push_back({"u", "l20.w", mib / 2});
  EXPECT_EQ(names(many, {.bytes = 16 * mib}),
            (Texts{"a", "bcde", "fghi", "jklm", "nopq", "rs", "tu"}));
  EXPECT_EQ(names({many[0], many[20]}, {}), (Texts{"au"}));
}

// Dropout draws for each worker its part of what one worker draws.
ir::Var perceptron(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = 40, .act = "tanh"});
  h = nn::dropout(h, {.p = 0.2});
  h = nn::fc(h, {.size = 40, .act = "relu"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

using Network = std::function<ir::Var(ir::Builder&)>;

// A table that is looked up, and if tied is the weight of the output, too.
struct Table {
  int64_t rows = 5;
  bool sparse = true;
  bool tied = false;
  int64_t batch = -1;  // of a worker
};

Network with(const Table& t) {
  return [t](ir::Builder& b) {
    const ir::Var ids = nn::cast(b.data("y", i64, {t.batch, 1}), i64);
    ir::Var h =
        nn::embedding(ids, {.rows = t.rows, .dim = 12, .sparse = t.sparse, .name = "table"});
    h = nn::add(nn::reshape(h, {t.batch, 12}), b.data("x", f32, {t.batch, 12}));
    h = nn::fc(h, {.size = t.tied ? 12 : 3, .act = "tanh"});
    if (!t.tied) return nn::mean(nn::square(h));
    const ir::Var logits = nn::matmul(h, b.var("table.w_0"), {.transpose_y = true});
    return nn::mean(nn::softmax_cross_entropy(logits, b.var("y")));
  };
}

// Types of the ops that work on the gradients of the table, and their variables.
std::vector<std::string> parts_of_table(const ir::Program& main) {
  std::vector<std::string> out;
  for (const ir::Op& op : main.ops()) {
    if (op.role != ir::Role::kBackward) continue;
    std::string line = op.type();
    for (const auto* slots : {&op.inputs, &op.outputs})
      for (const ir::Names& names : *slots)
        for (const std::string& name : names)
          if (name.starts_with("table.w_0@GRAD")) line += " " + name;
    if (line != op.type()) out.push_back(line);
  }
  return out;
}

std::vector<std::string> parts_of_table(const Network& network, int workers) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  optim::Sgd sgd({.lr = 0.2});
  minimize_for_worker(network(b), sgd, {{"data_parallel", {{"fuse", false}}}}, 0, workers);
  return parts_of_table(main);
}

TEST(DataParallel, ATiedTablesDensePartLeavesEarly) {
  const auto parts = [](int workers) { return parts_of_table(with({.tied = true}), workers); };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(parts(2),
            (Texts{"matmul table.w_0@GRAD", "all_reduce_start table.w_0@GRAD table.w_0@GRAD",
                   "embedding_grad table.w_0@GRAD_0",
                   "all_gather_rows_start table.w_0@GRAD_0 table.w_0@GRAD_0@ALL",
                   "all_reduce_wait table.w_0@GRAD table.w_0@GRAD",
                   "all_gather_rows_wait table.w_0@GRAD_0@ALL table.w_0@GRAD_0 "
                   "table.w_0@GRAD_0@ALL",
                   "sum table.w_0@GRAD table.w_0@GRAD_0@ALL table.w_0@GRAD_sum_0"}));
  // The rows of so many workers could be more than the table.
  EXPECT_EQ(parts(9), (Texts{"matmul table.w_0@GRAD", "embedding_grad table.w_0@GRAD_0",
                             "sum table.w_0@GRAD table.w_0@GRAD_0 table.w_0@GRAD_sum_0",
                             "all_reduce_start table.w_0@GRAD_sum_0 table.w_0@GRAD_sum_0",
                             "all_reduce_wait table.w_0@GRAD_sum_0 table.w_0@GRAD_sum_0"}));
}

TEST(DataParallel, RowsOfALargeTableTravelInsteadOfItsGradient) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(parts_of_table(with({.rows = 300, .sparse = false, .batch = 12}), 2),
            (Texts{"embedding_grad table.w_0@GRAD@ROWS",
                   "all_gather_rows_start table.w_0@GRAD@ROWS table.w_0@GRAD@ROWS@ALL",
                   "fill table.w_0@GRAD@ZEROS",
                   "all_gather_rows_wait table.w_0@GRAD@ROWS@ALL table.w_0@GRAD@ROWS "
                   "table.w_0@GRAD@ROWS@ALL",
                   "sum table.w_0@GRAD@ZEROS table.w_0@GRAD@ROWS@ALL table.w_0@GRAD"}));
  EXPECT_EQ(parts_of_table(with({.rows = 300, .sparse = false, .tied = true, .batch = 12}), 2),
            (Texts{"matmul table.w_0@GRAD", "all_reduce_start table.w_0@GRAD table.w_0@GRAD",
                   "embedding_grad table.w_0@GRAD_0@ROWS",
                   "all_gather_rows_start table.w_0@GRAD_0@ROWS table.w_0@GRAD_0@ROWS@ALL",
                   "all_reduce_wait table.w_0@GRAD table.w_0@GRAD",
                   "all_gather_rows_wait table.w_0@GRAD_0@ROWS@ALL table.w_0@GRAD_0@ROWS "
                   "table.w_0@GRAD_0@ROWS@ALL",
                   "sum table.w_0@GRAD table.w_0@GRAD_0@ROWS@ALL table.w_0@GRAD_sum_0"}));
  // 30 workers look up more rows than there are; an open batch may differ between workers.
  const Texts whole{"embedding_grad table.w_0@GRAD",
                    "all_reduce_start table.w_0@GRAD table.w_0@GRAD",
                    "all_reduce_wait table.w_0@GRAD table.w_0@GRAD"};
  EXPECT_EQ(parts_of_table(with({.rows = 300, .sparse = false, .batch = 12}), 30), whole);
  EXPECT_EQ(parts_of_table(with({.rows = 300, .sparse = false}), 2), whole);
}

// w + h passes one gradient to both.
TEST(DataParallel, AGradientIsReducedWhenNobodyReadsTheOwnOneAnyMore) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var h = nn::reduce_mean(nn::fc(b.data("x", f32, {-1, 4}), {.size = 6}), {.dim = {0}});
  const nn::Layer shift(b, "shift", "fc", nn::Where::current());
  const ir::Var w = shift.parameter("w_0", {6}, {}, nn::init::constant(1));
  optim::Sgd sgd;
  minimize_for_worker(nn::mean(nn::square(h + w)), sgd, {{"data_parallel"}}, 0, 2);
  std::set<std::string> under_way;
  size_t calls = 0;
  for (const ir::Op& op : main.ops()) {
    if (op.type() == "all_reduce_wait")
      for (const std::string& name : op.in("xs")) under_way.erase(name);
    for (const std::string& name : under_way) EXPECT_FALSE(op.reads(name)) << ir::to_text(op);
    if (op.type() != "all_reduce_start") continue;
    ++calls;
    for (const std::string& name : op.in("xs")) under_way.insert(name);
  }
  EXPECT_GT(calls, 0u);
}

void expect_like_one_worker(const std::function<Network(int workers)>& network_of,
                            const std::shared_ptr<optim::Optimizer>& optimizer, double tolerance) {
  const Training one = testing::train(network_of(1), *optimizer, {.workers = 1});
  ASSERT_LT(one.losses.back(), one.losses.front());
  for (const int workers : {2, 4}) {
    const Training many = testing::train(network_of(workers), *optimizer,
                                         {.workers = workers, .strategies = {{"data_parallel"}}});
    testing::expect_equal(many, one, tolerance, str(workers, " workers"));
  }
}

TEST(DataParallel, NWorkersAreOneWorker) {
  const auto perceptrons = [](int) { return perceptron; };
  expect_like_one_worker(perceptrons, std::make_shared<optim::Sgd>(optim::SgdOptions{.lr = 0.2}),
                         1e-6);
  expect_like_one_worker(
      perceptrons,
      std::make_shared<optim::Momentum>(optim::MomentumOptions{.lr = 0.05, .l2 = 1e-3}), 1e-6);
  expect_like_one_worker(perceptrons,
                         std::make_shared<optim::Momentum>(optim::MomentumOptions{
                             .lr = 0.05, .clip = optim::clip_by_global_norm(0.1)}),
                         1e-6);
}

TEST(DataParallel, SparseGradientsToo) {
  const auto sgd = std::make_shared<optim::Sgd>(optim::SgdOptions{.lr = 0.2});
  const int64_t batch = testing::TrainOptions().batch;
  for (const bool tied : {false, true}) {
    const auto rows = [&](int) { return with({.tied = tied}); };
    const auto large = [&](int workers) {
      return with({.rows = 300, .sparse = false, .tied = tied, .batch = batch / workers});
    };
    expect_like_one_worker(rows, sgd, 1e-6);
    expect_like_one_worker(large, sgd, 1e-6);
    // Rows that nobody looks up are moved by what momentum has kept.
    expect_like_one_worker(
        large, std::make_shared<optim::Momentum>(optim::MomentumOptions{.lr = 0.05}), 1e-6);
  }
}

TEST(DataParallel, FusedOrNotIsTheSameBits) {
  optim::Adam adam({.lr = 0.01});
  const auto with = [&](const ir::Attrs& options) {
    return testing::train(perceptron, adam,
                          {.workers = 3, .strategies = {{"data_parallel", options}}});
  };
  const Training fused = with({}), single = with({{"fuse", false}}), again = with({});
  EXPECT_EQ(fused.losses, single.losses);
  testing::expect_equal(fused, single, 0, "unfused");
  testing::expect_equal(fused, again, 0, "a second time");
}

}  // namespace
}  // namespace fleetx::strategies::data_parallel_test
