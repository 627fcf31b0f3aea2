#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::lamb_test {
namespace {

using testing::Training;

ir::Var network(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = 20, .act = "tanh"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

const ir::Attrs kOptions = {{"lamb_weight_decay", 0.02},
                            {"exclude_from_weight_decay", ir::Strings{"b_0"}}};

TEST(Lamb, ProgramText) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  optim::Adam adam({.lr = 0.1, .beta1 = 0.8, .epsilon = 1e-5});
  testing::minimize_for_worker(network(b), adam, {{"lamb", kOptions}}, 0, 1);
  std::vector<std::string> updates;
  for (const ir::Op& op : main.ops())
    if (op.def->updates_parameters) updates.push_back(ir::to_text(op));
  ASSERT_EQ(updates.size(), 4u);
  for (const char* part :
       {"= lamb([fc_1.w_0], [fc_1.w_0@GRAD], [fc_1.w_0_moment1_0], [fc_1.w_0_moment2_0]",
        "beta1=0.8", "epsilon=1e-05", "weight_decay=0.02", "with_decay=[1.0]"})
    EXPECT_TRUE(testing::contains(updates[0], part));
  EXPECT_TRUE(testing::contains(updates[1], "fc_1.b_0"));
  EXPECT_TRUE(testing::contains(updates[1], "with_decay=[0.0]"));
}

TEST(Lamb, IsTheOptimizerOfThatName) {
  optim::Adam adam({.lr = 0.02, .beta1 = 0.8, .epsilon = 1e-6});
  optim::Lamb lamb(
      {.lr = 0.02, .beta1 = 0.8, .epsilon = 1e-6, .weight_decay = 0.02, .exclude = {"b_0"}});
  const Training want = testing::train(network, lamb, {});
  ASSERT_LT(want.losses.back(), want.losses.front());
  testing::expect_equal(testing::train(network, adam, {.strategies = {{"lamb", kOptions}}}), want,
                        0, "one worker");
  testing::expect_equal(
      testing::train(network, adam,
                     {.workers = 2, .strategies = {{"data_parallel"}, {"lamb", kOptions}}}),
      want, 1e-5, "two workers");
}

TEST(Lamb, RefusesOtherOptimizers) {
  const auto minimize = [](optim::Optimizer& optimizer) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    testing::minimize_for_worker(network(b), optimizer, {{"lamb", {}}}, 0, 1);
  };
  optim::Sgd sgd;
  optim::AdamW adamw;
  optim::Momentum momentum;
  testing::expect_error(Error::Kind::kInvalidArgument, {"lamb", "adam", "sgd", "use Adam"},
                        [&] { minimize(sgd); });
  testing::expect_error(Error::Kind::kInvalidArgument, {"lamb", "adamw"}, [&] { minimize(adamw); });
  testing::expect_error(Error::Kind::kInvalidArgument, {"lamb", "momentum", "lars"},
                        [&] { minimize(momentum); });
}

TEST(Lamb, IsNotLars) {
  testing::expect_error(Error::Kind::kInvalidArgument, {"lars", "lamb", "Momentum", "Adam"}, [] {
    (void)ResolvedStrategies({{"lars"}, {"lamb"}}, {});
  });
}

}  // namespace
}  // namespace fleetx::strategies::lamb_test
