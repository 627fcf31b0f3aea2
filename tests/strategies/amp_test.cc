#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::amp_test {
namespace {

using testing::contains;
using testing::error_of;
using testing::minimize_for_worker;
using testing::Training;
using testing::TrainOptions;
using Lines = std::vector<std::string>;

constexpr const char* kText = R"(program
data x : f32[-1,4]
param w1 : f32[4,3]
param b1 : f32[3]
param w2 : f32[4,3]
var h : f32[-1,3]
var r : f32[-1,3]
var g : f32[-1,3]
var s : f32[-1,3]
var e : f32[-1,3]
var loss : f32[1]

forward:
h = fc(x, w1, b1)
r = relu(h)
g = fc(x, w2, _)
s = elementwise_add(r, g)
e = exp(s)
loss = mean(e)
)";

Lines lines_of(const ir::Program& program, ir::Role role = ir::Role::kForward) {
  Lines lines;
  for (const ir::Op& op : program.ops())
    if (op.role == role) lines.push_back(ir::to_text(op));
  return lines;
}

ir::Program forward(const ir::Attrs& options = {}, const std::string& text = kText) {
  ir::Program main = ir::parse_text(text), startup;
  ResolvedStrategies resolved({{"amp", options}}, {});
  resolved.validate(main);
  resolved.apply(Phase::kForward, {main, startup});
  return main;
}

TEST(Amp, ProductsAndWhatFollowsThemComputeIn16Bits) {
  const ir::Program main = forward();
  EXPECT_EQ(lines_of(main),
            (Lines{R"(x@BF16 = cast(x) {dtype="bf16"})", "h = fc(x@BF16, w1, b1)", "r = relu(h)",
                   "g = fc(x@BF16, w2, _)", "s = elementwise_add(r, g)",
                   R"(s@F32 = cast(s) {dtype="f32"})", "e = exp(s@F32)", "loss = mean(e)"}));
  for (const char* half : {"h", "r", "g", "s"}) EXPECT_EQ(main.var(half).type.dtype, bf16) << half;
  for (const char* full : {"x", "w1", "b1", "w2", "e", "loss"})
    EXPECT_EQ(main.var(full).type.dtype, f32) << full;
  EXPECT_EQ(forward({{"dtype", "float16"}}).var("h").type.dtype, f16);
}

TEST(Amp, ListsOfTheUser) {
  // Names of the original and ours.
  const Lines f32_only = lines_of(ir::parse_text(kText));
  EXPECT_EQ(lines_of(forward({{"custom_black_list", ir::Strings{"mul"}}})), f32_only);
  EXPECT_EQ(lines_of(forward({{"custom_black_list", ir::Strings{"fc", "conv2d"}}})), f32_only);
  const ir::Program white = forward({{"custom_white_list", ir::Strings{"exp"}}});
  EXPECT_EQ(white.var("e").type.dtype, bf16);
  EXPECT_EQ(white.var("loss").type.dtype, f32);
  // Ops of the original that others make here say nothing about those.
  const ir::Strings composed = {"fused_elemwise_activation", "group_norm", "c_allreduce_sum"};
  EXPECT_EQ(lines_of(forward({{"custom_white_list", composed}})), lines_of(forward({})));
  // A gray op with one f32 input is f32.
  const ir::Program one = forward({{"custom_black_varnames", ir::Strings{"g"}}});
  EXPECT_EQ(one.var("r").type.dtype, bf16);
  EXPECT_EQ(one.var("g").type.dtype, f32);
  EXPECT_EQ(one.var("s").type.dtype, f32);
}

constexpr const char* kTable = R"(program
data ids : i64[-1,1]
param table : f32[9,4]
param w : f32[4,4]
var e : f32[-1,1,4]
var x : f32[-1,4]
var h : f32[-1,4]
var s : f32[-1,4]
var m : f32[-1,4]
var loss : f32[1]

forward:
e = embedding(ids, table)
x = flatten(e)
h = fc(x, w, _)
s = elementwise_add(x, h)
m = relu(s)
loss = mean(m)
)";

// A table is read in f32, but does not make what follows it f32: unless the user says so.
TEST(Amp, WhatFollowsATableIsFree) {
  const ir::Program main = forward({}, kTable);
  for (const char* half : {"h", "s", "m"}) EXPECT_EQ(main.var(half).type.dtype, bf16) << half;
  for (const char* full : {"e", "x", "table"}) EXPECT_EQ(main.var(full).type.dtype, f32) << full;
  for (const ir::Attrs& black : {ir::Attrs{{"custom_black_list", ir::Strings{"lookup_table_v2"}}},
                                 ir::Attrs{{"custom_black_varnames", ir::Strings{"e"}}}}) {
    const ir::Program named = forward(black, kTable);
    EXPECT_EQ(named.var("h").type.dtype, bf16);
    for (const char* full : {"e", "x", "s", "m"})
      EXPECT_EQ(named.var(full).type.dtype, f32) << full;
  }
  const ir::Program white = forward({{"custom_white_list", ir::Strings{"embedding"}}}, kTable);
  EXPECT_EQ(white.var("e").type.dtype, bf16);
  const ir::Program pure = forward({{"use_pure_fp16", true}, {"use_fp16_guard", false}}, kTable);
  EXPECT_EQ(pure.var("table").type.dtype, f32);
}

TEST(Amp, RefusesWhatMakesNoSense) {
  const auto refused = [](const ir::Attrs& options) { return error_of([&] { forward(options); }); };
  EXPECT_TRUE(contains(refused({{"custom_white_list", ir::Strings{"softmaks"}}}), "softmax"));
  EXPECT_TRUE(contains(refused({{"custom_black_list", ir::Strings{"matmul_v3"}}}), "matmul_v2"));
  EXPECT_TRUE(contains(refused({{"custom_white_list", ir::Strings{"softmax", "gelu"}},
                                {"custom_black_list", ir::Strings{"gelu"}}}),
                       "gelu"));
  // Different names of one op.
  EXPECT_TRUE(contains(refused({{"custom_white_list", ir::Strings{"mul"}},
                                {"custom_black_list", ir::Strings{"matmul_v2"}}}),
                       "'fc'"));
  EXPECT_TRUE(contains(refused({{"custom_black_varnames", ir::Strings{"hh"}}}), "hh"));
  // Field, value and remedy.
  using Said = std::vector<const char*>;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [options, said] : std::vector<std::pair<ir::Attrs, Said>>{
           {{{"custom_white_list", ir::Strings{"zzz"}}},
            {"custom_white_list has 'zzz'", "write names of ops"}},
           {{{"custom_black_varnames", ir::Strings{"hh"}}},
            {"amp_configs.custom_black_varnames has 'hh'", "name variables of the network"}},
           {{{"custom_white_list", ir::Strings{"gelu"}},
             {"custom_black_list", ir::Strings{"gelu"}}},
            {"custom_white_list [gelu] and custom_black_list [gelu]", "take it out of one"}},
           {{{"dtype", "float64"}}, {"dtype is 'float64'", "must be 'bfloat16' or 'float16'"}},
           {{{"incr_ratio", 1.0}}, {"incr_ratio is 1;", "must be greater than 1"}},
           {{{"incr_ratio", infinity}}, {"incr_ratio is inf;", "must be greater than 1"}},
           {{{"decr_ratio", 1.0}}, {"decr_ratio is 1;", "must be between 0 and 1"}},
           {{{"decr_ratio", 0.0}}, {"decr_ratio is 0;", "must be between 0 and 1"}},
           {{{"decr_ratio", -0.5}}, {"decr_ratio is -0.5;", "must be between 0 and 1"}},
           {{{"init_loss_scaling", 0.0}}, {"init_loss_scaling is 0;", "must be positive"}},
           {{{"incr_every_n_steps", 0}}, {"incr_every_n_steps is 0;", "must be positive"}},
           {{{"decr_every_n_nan_or_inf", -1}}, {"decr_every_n_nan_or_inf is -1;", "positive"}},
           {{{"use_optimizer_fp16", true}, {"dtype", "float16"}}, {"use the dtype bfloat16"}}}) {
    const std::string error = refused(options);
    for (const char* part : said) EXPECT_TRUE(contains(error, part)) << part << " in " << error;
  }
}

// The op that overflows need not be the one that makes a gradient of a parameter.
TEST(Amp, KnowsWhichOpsLeadToAGradient) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var h = nn::sqrt(nn::fc(b.data("x", f32, {-1, 12}), {.size = 16, .name = "below"}));
  optim::Sgd sgd;
  minimize_for_worker(nn::mean(nn::fc(h, {.size = 5, .name = "above"})), sgd, {{"amp"}}, 0, 1);
  const auto op = std::find_if(main.ops().begin(), main.ops().end(),
                               [](const ir::Op& o) { return o.type() == "update_loss_scaling"; });
  ASSERT_NE(op, main.ops().end());
  const auto makers = op->attr<ir::Strings>("makers");
  ASSERT_EQ(makers.size(), 4u);
  EXPECT_TRUE(contains(makers.front(), "'fc_grad' of 'above'"));
  EXPECT_FALSE(contains(makers.front(), "sqrt_grad"));
  const auto below = std::find_if(makers.begin(), makers.end(), [](const std::string& m) {
    return m.starts_with("'fc_grad' of 'below'");
  });
  ASSERT_NE(below, makers.end());
  EXPECT_TRUE(contains(*below, "or one that leads there: 'sqrt_grad'"));
  EXPECT_FALSE(contains(*below, "above"));
}

ir::Var mlp(ir::Builder& b) {
  ir::Var h = nn::fc(b.data("x", f32, {-1, 12}), {.size = 16, .act = "relu"});
  h = nn::fc(h, {.size = 16, .act = "gelu"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

ir::Var convolutions(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 3, 8, 8});
  h = nn::batch_norm(nn::conv2d(h, {.filters = 16, .kernel = 3, .padding = 1, .bias = false}),
                     {.act = "relu"});
  const ir::Var shortcut = h;
  h = nn::batch_norm(nn::conv2d(h, {.filters = 16, .kernel = 3, .padding = 1, .bias = false}));
  h = nn::dropout(nn::relu(h + shortcut), {.p = 0.1});
  h = nn::pool2d(h, {.type = "avg", .global = true});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

constexpr const char* kTraining = R"(program
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
var dw1@BF16 : bf16[4,3]
var dw1 : f32[4,3]
var dw1@MADE : f32[4,3]

forward:
h = fc(x, w1, _)
y = fc(h, w2, _)
loss = mean(y)

backward:
dloss = fill() {shape=[1], value=1.0}
dy = mean_grad(y, dloss)
dh, dw2, _ = fc_grad(h, w2, _, _, dy)
_, dw1@MADE, _ = fc_grad(x, w1, _, _, dh)
dw1@BF16 = cast(dw1@MADE) {dtype="bf16"}
dw1 = cast(dw1@BF16) {dtype="f32"}

training:
loss(loss, dloss)
parameter(w2, dw2, _)
parameter(w1, dw1, _)
)";

ir::Program gradients_of(int workers) {
  ir::Program main = ir::parse_text(kTraining), startup;
  ResolvedStrategies resolved({{"amp", {{"init_loss_scaling", 256.0}}}},
                              {.mesh = Mesh({{"dp", workers}}, 0)});
  resolved.apply(Phase::kGradients, {main, startup});
  EXPECT_EQ(lines_of(startup)[0], "loss_scaling_0 = fill() {shape=[1], value=256.0}");
  EXPECT_EQ(main.training().ready, "amp_finite_0");
  return main;
}

// One worker: gradients are checked where they are made, and unscaled when they are needed; that is
// also where one of 16 bits becomes f32.
TEST(Amp, GradientsOfOneWorker) {
  EXPECT_EQ(
      lines_of(gradients_of(1), ir::Role::kBackward),
      (Lines{"dloss = fill() {shape=[1], value=1.0}",
             R"(dloss@SCALED = elementwise_mul(dloss, loss_scaling_0) {name="amp"})",
             "dy = mean_grad(y, dloss@SCALED)", "dh, dw2@SCALED, _ = fc_grad(h, w2, _, _, dy)",
             "dw2@FINITE = check_finite([dw2@SCALED])", "_, dw1@MADE, _ = fc_grad(x, w1, _, _, dh)",
             R"(dw1@BF16 = cast(dw1@MADE) {dtype="bf16"})", "dw1@FINITE = check_finite([dw1@BF16])",
             "dw2, _ = unscale(dw2@SCALED, loss_scaling_0)",
             "dw1, _ = unscale(dw1@BF16, loss_scaling_0)",
             R"(amp_finite_0, amp_first_bad_0 = all_true([dw2@FINITE, dw1@FINITE]) )"
             R"({name="amp"})"}));
}

// Several: all of that in one sweep, so that they can be averaged at once.
TEST(Amp, GradientsOfSeveralWorkers) {
  EXPECT_EQ(lines_of(gradients_of(2), ir::Role::kBackward),
            (Lines{"dloss = fill() {shape=[1], value=1.0}",
                   R"(dloss@SCALED = elementwise_mul(dloss, loss_scaling_0) {name="amp"})",
                   "dy = mean_grad(y, dloss@SCALED)", "dh, dw2, _ = fc_grad(h, w2, _, _, dy)",
                   "dw2, dw2@FINITE = unscale(dw2, loss_scaling_0)",
                   "_, dw1@MADE, _ = fc_grad(x, w1, _, _, dh)",
                   R"(dw1@BF16 = cast(dw1@MADE) {dtype="bf16"})",
                   "dw1, dw1@FINITE = unscale(dw1@BF16, loss_scaling_0)",
                   R"(amp_finite_0, amp_first_bad_0 = all_true([dw2@FINITE, dw1@FINITE]) )"
                   R"({name="amp"})"}));
}

// Large weights whose gradients come from 16-bit numbers: these wait in 16 bits for the check of
// all.
ir::Program with_halves() {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var ids = b.data("ids", i64, {8, 1});
  const ir::Var e = nn::embedding(ids, {.rows = 9, .dim = 256, .sparse = true, .name = "table"});
  ir::Var h = nn::fc(nn::reshape(e, {8, 256}), {.size = 256, .name = "layer"});
  h = h + nn::fc(nn::fc(h, {.size = 9, .name = "down"}), {.size = 256, .name = "up"});
  const ir::Var loss = nn::mean(nn::matmul(h, b.var("table.w_0"), {.transpose_y = true}));
  optim::Sgd sgd({.lr = 0.1});
  minimize_for_worker(loss, sgd, {{"amp"}}, 0, 1);
  return main;
}

TEST(Amp, GradientsWaitIn16Bits) {
  const ir::Program main = with_halves();
  std::map<std::string, std::string> maker;  // of a variable
  for (const ir::Op& op : main.ops())
    for (const ir::Names& names : op.outputs)
      for (const std::string& name : names) maker[name] = op.type();
  std::map<std::string, std::pair<std::string, DType>> gradient;  // of a parameter: maker and type
  for (const ir::Op& op : main.ops()) {
    if (op.type() != "sgd") continue;
    const std::string& g = op.in("grad").front();
    gradient[op.in("param").front()] = {maker.at(g), main.var(g).type.dtype};
    if (maker.at(g) != "sum") continue;
    // Rows are added to what the product has made, of which nobody keeps an f32 copy.
    const auto sum = std::find_if(main.ops().begin(), main.ops().end(),
                                  [&](const ir::Op& o) { return o.writes(g); });
    EXPECT_EQ(maker.at(sum->in("xs")[0]), "matmul");
    EXPECT_EQ(main.var(sum->in("xs")[0]).type.dtype, bf16);
    EXPECT_EQ(maker.at(sum->in("xs")[1]), "embedding_grad");
  }
  using Made = std::pair<std::string, DType>;
  EXPECT_EQ(gradient["layer.w_0"], Made("round_checked", bf16));
  for (const char* small : {"layer.b_0", "down.w_0", "up.w_0"})
    EXPECT_EQ(gradient[small], Made("fc_grad", f32)) << small;
  EXPECT_EQ(gradient["table.w_0"], Made("sum", bf16));
}

TEST(Amp, UpdatesFollowTheFlag) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  optim::Sgd sgd({.lr = 0.1});
  minimize_for_worker(mlp(b), sgd, {{"amp"}}, 0, 1);
  int updates = 0;
  for (const ir::Op& op : main.ops()) {
    if (op.role != ir::Role::kUpdate) continue;
    updates += op.type() == "sgd";
    EXPECT_EQ(op.guard, op.type() == "sgd" ? "amp_finite_0" : "") << op.type();
    // Nobody else reads the gradients, so that the update divides them.
    if (op.type() != "sgd") continue;
    EXPECT_EQ(op.in("grad").front(), op.in("param").front() + "@GRAD@SCALED");
    EXPECT_EQ(op.in("scale"), ir::Names{"amp_inverse_0"});
  }
  EXPECT_EQ(updates, 6);
  EXPECT_EQ(std::prev(main.ops().end())->type(), "update_loss_scaling");
}

Training train(const std::function<ir::Var(ir::Builder&)>& network,
               const std::vector<Request>& requests, int workers, TrainOptions o = {}) {
  optim::Momentum momentum({.lr = 0.05});
  o.workers = workers;
  o.strategies = requests;
  return testing::train(network, momentum, o);
}

void expect_same_bits(const Training& got, const Training& want) {
  EXPECT_EQ(got.losses, want.losses);
  for (const auto& [name, value] : want.state)
    testing::expect_close(got.state.at(name), value, 0, name);
}

// With all ops in f32 only the loss is scaled and the gradients unscaled, which powers of two do
// without rounding.
TEST(Amp, WithAllOpsInF32ItIsF32) {
  const ir::Attrs black = {{"custom_black_list", ir::Strings{"fc", "conv2d"}}};
  expect_same_bits(train(mlp, {{"amp", black}}, 1), train(mlp, {}, 1));
  expect_same_bits(train(mlp, {{"amp", black}, {"data_parallel"}}, 2),
                   train(mlp, {{"data_parallel"}}, 2));
  const TrainOptions images = {.sample = {3, 8, 8}};
  expect_same_bits(train(convolutions, {{"amp", black}}, 1, images),
                   train(convolutions, {}, 1, images));
}

double last_losses(const Training& t) {
  double sum = 0;
  for (size_t i = t.losses.size() - 5; i < t.losses.size(); ++i)
    sum += static_cast<double>(t.losses[i]);
  return sum / 5;
}

TEST(Amp, LearnsAsF32Does) {
  TrainOptions images = {.steps = 40, .sample = {3, 8, 8}};
  images.own = "batch_norm";
  const TrainOptions rows = {.steps = 40};
  const Training mlp32 = train(mlp, {}, 1, rows), conv32 = train(convolutions, {}, 1, images);
  ASSERT_LT(last_losses(mlp32), 0.8 * static_cast<double>(mlp32.losses.front()));
  for (const char* dtype : {"bfloat16", "float16"}) {
    const Request amp{"amp", {{"dtype", dtype}}};
    EXPECT_NEAR(last_losses(train(mlp, {amp}, 1, rows)), last_losses(mlp32), 0.03) << dtype;
    EXPECT_NEAR(last_losses(train(convolutions, {amp}, 1, images)), last_losses(conv32), 0.05)
        << dtype;
    // Workers differ in the order of sums only.
    const Training two = train(mlp, {amp, {"data_parallel"}}, 2, rows);
    EXPECT_NEAR(last_losses(two), last_losses(mlp32), 0.03) << dtype;
    const Training synced = train(convolutions, {amp, {"data_parallel"}, {"sync_batch_norm"}}, 2,
                                  {.steps = 40, .sample = {3, 8, 8}});
    EXPECT_NEAR(last_losses(synced), last_losses(conv32), 0.05) << dtype;
  }
}

// With weights whose gradients wait in 16 bits.
TEST(Amp, LargeWeightsLearnAsInF32) {
  const auto wide = [](ir::Builder& b) {
    ir::Var h = nn::fc(b.data("x", f32, {-1, 12}), {.size = 256, .act = "relu"});
    h = nn::fc(h, {.size = 256, .act = "relu"});
    const ir::Var logits = nn::fc(h, {.size = 5});
    return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
  };
  const TrainOptions o = {.steps = 40};
  const Training f32_only = train(wide, {}, 1, o);
  ASSERT_LT(last_losses(f32_only), 0.8 * static_cast<double>(f32_only.losses.front()));
  for (const char* dtype : {"bfloat16", "float16"})
    EXPECT_NEAR(last_losses(train(wide, {{"amp", {{"dtype", dtype}}}}, 1, o)),
                last_losses(f32_only), 0.03)
        << dtype;
}

// Nothing but the embedding's rows keeps what passes by the layers of a transformer in f32.
TEST(Amp, ATransformerLearnsAsF32Does) {
  const auto transformer = [](ir::Builder& b) {
    // Numbers in [-1, 2.6) as words.
    const ir::Var x = nn::scale(b.data("x", f32, {-1, 12}), 4, 4);
    const ir::Var words = b.op("cast", {{"x", x}}, {{"dtype", i64}});
    ir::Var h = nn::embedding(words, {.rows = 16, .dim = 16});
    for (int i = 0; i < 2; ++i)
      h = nn::encoder_layer(h, {.heads = 2, .intermediate = 32, .act = "gelu", .dropout = 0});
    const ir::Var logits = nn::fc(nn::reshape(h, {-1, 12 * 16}), {.size = 5});
    return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
  };
  // After more steps the losses of this network depend on the last bit of every sum: by 0.06 of
  // one CPU's bf16 products to another's after 40, by 0.2 after 60.
  const TrainOptions o = {.steps = 20};
  const Training f32_only = train(transformer, {}, 1, o);
  ASSERT_LT(last_losses(f32_only), 0.8 * static_cast<double>(f32_only.losses.front()));
  EXPECT_NEAR(last_losses(train(transformer, {{"amp"}}, 1, o)), last_losses(f32_only), 0.05);
}

// One of two workers in every step, or a job of its own.
struct Worker {
  ir::Program main, startup;
  runtime::Scope scope;
  runtime::Executor exe;
  std::string loss;

  Worker(const ir::Attrs& options, int rank, int workers, const testing::SharedGroups& groups,
         const std::vector<Request>& more = {})
      : exe({.plan = {.groups = groups}}) {
    ir::Builder b(main, startup);
    const ir::Var l = mlp(b);
    loss = l.name();
    optim::Adam adam({.lr = 0.01});
    std::vector<Request> requests = {{"amp", options}};
    if (workers > 1) requests.push_back({"data_parallel"});
    requests.insert(requests.end(), more.begin(), more.end());
    minimize_for_worker(l, adam, requests, rank, workers);
    exe.run(startup, scope);
  }

  float run(int step, const TrainOptions& o, int rank, bool bad = false) {
    runtime::Feeds feeds = testing::batch_of(step, o, rank);
    if (bad) feeds[0].second.data<float>()[0] = std::numeric_limits<float>::infinity();
    return exe.run(main, scope, feeds, {loss})[0].item<float>();
  }
  std::map<std::string, Tensor> state() const {
    std::map<std::string, Tensor> all;
    for (const std::string& name : scope.names()) all.emplace(name, scope.get(name).clone());
    return all;
  }
  float scale() const { return scope.get("loss_scaling_0").item<float>(); }
  int good() const { return scope.get("num_good_steps_0").item<int32_t>(); }
  int bad() const { return scope.get("num_bad_steps_0").item<int32_t>(); }
};

const ir::Attrs kQuick = {{"init_loss_scaling", 1024.0},
                          {"incr_every_n_steps", 3},
                          {"decr_every_n_nan_or_inf", 2},
                          {"incr_ratio", 2.0},
                          {"decr_ratio", 0.5}};

TEST(Amp, OneBadWorkerMakesAllSkipTheStep) {
  const TrainOptions o = {.workers = 2};
  testing::run_workers(2, [&](int rank, const testing::SharedGroups& groups) {
    Worker w(kQuick, rank, 2, groups);
    w.run(0, o, rank);
    w.run(1, o, rank);
    auto before = w.state();
    w.run(2, o, rank, rank == 1);
    const auto after = w.state();
    EXPECT_EQ(after.at("@step@").item<int64_t>(), 3);
    EXPECT_EQ(w.bad(), 1);
    EXPECT_EQ(w.good(), 0);
    for (const auto& [name, value] : before)
      if (name != "@step@" && !name.starts_with("num_"))
        testing::expect_close(after.at(name), value, 0, str(name, " of rank ", rank));
    w.run(3, o, rank);
    EXPECT_EQ(w.bad(), 0);
    for (const ir::VarInfo* p : w.main.parameters()) {
      const Tensor value = w.scope.get(p->name);  // a copy, which must outlive the loop
      for (const float v : value.data<float>()) ASSERT_TRUE(std::isfinite(v)) << p->name;
    }
  });
}

TEST(Amp, TheScaleGrowsAndShrinks) {
  Worker w(kQuick, 0, 1, nullptr);
  const TrainOptions o;
  std::vector<float> scales;
  for (int step = 0; step < 12; ++step) {
    w.run(step, o, 0, step == 4 || step == 7 || step == 8);
    scales.push_back(w.scale());
  }
  EXPECT_EQ(scales, (std::vector<float>{1024, 1024, 2048, 2048, 2048, 2048, 2048, 2048, 1024, 1024,
                                        1024, 2048}));

  ir::Attrs constant = kQuick;
  constant.insert_or_assign("use_dynamic_loss_scaling", false);
  Worker c(constant, 0, 1, nullptr);
  for (int step = 0; step < 4; ++step) c.run(step, o, 0);
  const auto before = c.state();
  c.run(4, o, 0, true);
  EXPECT_EQ(c.scale(), 1024);
  const std::string w0 = c.main.parameters()[0]->name;
  testing::expect_close(c.state().at(w0), before.at(w0), 0, "a bad step of a constant scale");
}

// Stopped in the middle of a period of the scale.
TEST(Amp, ResumesWithTheSameBits) {
  const TrainOptions o;
  Worker whole(kQuick, 0, 1, nullptr), first(kQuick, 0, 1, nullptr), second(kQuick, 0, 1, nullptr);
  std::vector<float> want, got;
  for (int step = 0; step < 10; ++step) want.push_back(whole.run(step, o, 0, step == 3));
  for (int step = 0; step < 5; ++step) got.push_back(first.run(step, o, 0, step == 3));
  for (const auto& [name, value] : first.state()) second.scope.set(name, value);
  for (int step = 5; step < 10; ++step) got.push_back(second.run(step, o, 0));
  got[3] = want[3] = 0;  // NaN is not equal to itself
  EXPECT_EQ(got, want);
  EXPECT_EQ(second.scale(), whole.scale());
  for (const auto& [name, value] : whole.state())
    testing::expect_close(second.state().at(name), value, 0, name);
}

TEST(Amp, WithRecompute) {
  ir::Strings kept;
  const auto network = [&](ir::Builder& b) {
    ir::Var h = nn::fc(b.data("x", f32, {-1, 12}), {.size = 16, .act = "relu"});
    kept = {h.name()};
    h = nn::dropout(nn::fc(h, {.size = 16, .act = "tanh"}), {.p = 0.2});
    const ir::Var logits = nn::fc(h, {.size = 5});
    return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
  };
  ir::Program main, startup;
  ir::Builder b(main, startup);
  (void)network(b);
  const Training plain = train(network, {{"amp"}}, 1);
  expect_same_bits(train(network, {{"amp"}, {"recompute", {{"checkpoints", kept}}}}, 1), plain);
}

// Parameters 16 bits wide, but for those of norms: the update is computed in f32 and rounded.
TEST(Amp, PureKeepsParametersIn16Bits) {
  const ir::Attrs pure = {{"use_pure_fp16", true}, {"use_fp16_guard", false}};
  ir::Program main, startup;
  ir::Builder b(main, startup);
  optim::Momentum momentum({.lr = 0.05});
  minimize_for_worker(convolutions(b), momentum, {{"amp", pure}}, 0, 1);
  for (const ir::VarInfo* p : main.parameters()) {
    const bool norm = p->name.starts_with("batch_norm");
    EXPECT_EQ(p->type.dtype, norm ? f32 : bf16) << p->name;
    EXPECT_EQ(startup.var(p->name).type.dtype, p->type.dtype) << p->name;
    EXPECT_EQ(main.var(p->name + "_velocity_0").type.dtype, f32);
  }
  const TrainOptions rows = {.steps = 40};
  const double want = last_losses(train(mlp, {}, 1, rows));
  ir::Attrs small_state = pure;
  small_state.insert_or_assign("use_optimizer_fp16", true);
  for (const ir::Attrs& options : {pure, small_state}) {
    EXPECT_NEAR(last_losses(train(mlp, {{"amp", options}}, 1, rows)), want, 0.1);
    EXPECT_NEAR(last_losses(train(mlp, {{"amp", options}, {"data_parallel"}}, 2, rows)), want, 0.1);
  }
}

TEST(Amp, PureInsideAGuardOnly) {
  const ir::Attrs guard = {{"use_pure_fp16", true}, {"fp16_guard_varnames", ir::Strings{"h", "r"}}};
  const ir::Program main = forward(guard);
  for (const char* half : {"w1", "b1", "h", "r"})
    EXPECT_EQ(main.var(half).type.dtype, bf16) << half;
  for (const char* full : {"w2", "g", "s", "e"}) EXPECT_EQ(main.var(full).type.dtype, f32) << full;
  EXPECT_TRUE(contains(error_of([] { forward({{"use_pure_fp16", true}}); }), "fp16_guard"));
}

}  // namespace
}  // namespace fleetx::strategies::amp_test
