#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::fp16_allreduce_test {
namespace {

using testing::Training;

constexpr const char* kText = R"(program
data x : f32[-1,4]
param w1 : f32[4,3]
param w2 : f32[3,1]
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

ir::Program apply(const ir::Attrs& options) {
  ir::Program main = ir::parse_text(kText), startup;
  ResolvedStrategies resolved({{"data_parallel"}, {"fp16_allreduce", options}},
                              {.mesh = Mesh({{"dp", 2}}, 0)});
  resolved.validate(main);
  resolved.apply(Phase::kGradients, {main, startup});
  return main;
}

std::vector<std::string> backward_of(const ir::Program& main) {
  std::vector<std::string> lines;
  for (const ir::Op& op : main.ops())
    if (op.role == ir::Role::kBackward) lines.push_back(ir::to_text(op));
  return lines;
}

TEST(Fp16AllReduce, ProgramText) {
  const ir::Program main = apply({{"fuse", false}});
  EXPECT_EQ(
      backward_of(main),
      (std::vector<std::string>{
          R"(dloss = assign("@worker_weight@"))", "dy = mean_grad(y, dloss)",
          "dh, dw2, _ = fc_grad(h, w2, _, _, dy)", R"(dw2@F16 = cast(dw2) {dtype="f16"})",
          R"([dw2@F16], all_reduce_ticket = all_reduce_start([dw2@F16], _) {group="dp", op="average"})",
          "_, dw1, _ = fc_grad(x, w1, _, _, dh)", R"(dw1@F16 = cast(dw1) {dtype="f16"})",
          R"([dw1@F16], all_reduce_ticket_1 = all_reduce_start([dw1@F16], _) {group="dp", op="average"})",
          R"([dw2@F16] = all_reduce_wait([dw2@F16], all_reduce_ticket) {group="dp", op="average"})",
          R"(dw2@MEAN = cast(dw2@F16) {dtype="f32"})",
          R"([dw1@F16] = all_reduce_wait([dw1@F16], all_reduce_ticket_1) {group="dp", op="average"})",
          R"(dw1@MEAN = cast(dw1@F16) {dtype="f32"})"}));
  EXPECT_EQ(main.training().find("w2")->gradient, "dw2@MEAN");
}

TEST(Fp16AllReduce, OneBucketForAll) {
  int calls = 0;
  const ir::Program main = apply({{"dtype", "bfloat16"}});
  for (const ir::Op& op : main.ops())
    if (op.type() == "all_reduce_start") {
      ++calls;
      EXPECT_EQ(op.in("xs"), (ir::Names{"dw2@BF16", "dw1@BF16"}));
    }
  EXPECT_EQ(calls, 1);
}

TEST(Fp16AllReduce, RefusesWhatMakesNoSense) {
  testing::expect_error(Error::Kind::kInvalidArgument, {"fp16_allreduce", "dtype", "float32"}, [] {
    apply({{"dtype", "float32"}});
  });
  testing::expect_error(Error::Kind::kInvalidArgument, {"fp16_allreduce", "data_parallel"}, [] {
    (void)ResolvedStrategies({{"fp16_allreduce"}}, {.mesh = Mesh({{"dp", 2}}, 0)});
  });
}

ir::Var perceptron(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = 40, .act = "tanh"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

ir::Var convolutions(ir::Builder& b) {
  ir::Var h = nn::reshape(b.data("x", f32, {-1, 12}), {-1, 3, 2, 2});
  h = nn::conv2d(h, {.filters = 32, .kernel = 3, .padding = 1, .act = "relu"});
  h = nn::conv2d(h, {.filters = 16, .kernel = 3, .padding = 1, .act = "relu"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

ir::Var sparse_table(ir::Builder& b) {
  const ir::Var ids = nn::cast(b.data("y", i64, {-1, 1}), i64);
  ir::Var h = nn::embedding(ids, {.rows = 5, .dim = 12, .sparse = true});
  h = nn::add(nn::reshape(h, {-1, 12}), b.data("x", f32, {-1, 12}));
  return nn::mean(nn::square(nn::fc(h, {.size = 3, .act = "tanh"})));
}

TEST(Fp16AllReduce, NWorkersAreOneWorkerButForTheRounding) {
  optim::Momentum momentum({.lr = 0.05, .clip = optim::clip_by_global_norm(0.5)});
  for (auto network : {perceptron, convolutions, sparse_table}) {
    const Training one = testing::train(network, momentum, {});
    for (const auto& [dtype, tolerance] : {std::pair{"float16", 1e-3}, {"bfloat16", 2e-2}}) {
      const auto train = [&](int workers) {
        return testing::train(
            network, momentum,
            {.workers = workers,
             .strategies = {{"data_parallel"}, {"fp16_allreduce", {{"dtype", dtype}}}}});
      };
      for (const int workers : {2, 4}) {
        const Training many = train(workers);
        testing::expect_equal(many, one, tolerance, str(dtype, ", ", workers, " workers"));
        testing::expect_equal(train(workers), many, 0, "a second time");
      }
    }
  }
}

// A bucket of 16 bits: half the bytes on the wire.
TEST(Fp16AllReduce, MovesHalfTheBytes) {
  optim::Sgd sgd;
  const auto wire = [&](const std::vector<Request>& requests) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    testing::minimize_for_worker(perceptron(b), sgd, requests, 0, 2);
    size_t bytes = 0;
    for (const ir::Op& op : main.ops())
      if (op.type() == "all_reduce_start")
        for (const std::string& x : op.in("xs"))
          bytes +=
              static_cast<size_t>(main.var(x).type.shape.numel()) * size_of(main.var(x).type.dtype);
    return bytes;
  };
  EXPECT_EQ(2 * wire({{"data_parallel"}, {"fp16_allreduce"}}), wire({{"data_parallel"}}));
}

}  // namespace
}  // namespace fleetx::strategies::fp16_allreduce_test
