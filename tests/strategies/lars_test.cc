#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/expect_error.h"

namespace fleetx::strategies::lars_test {
namespace {

using testing::Training;

ir::Var network(ir::Builder& b) {
  ir::Var h = b.data("x", f32, {-1, 12});
  h = nn::fc(h, {.size = 20, .act = "tanh"});
  const ir::Var logits = nn::fc(h, {.size = 5});
  return nn::mean(nn::softmax_cross_entropy(logits, b.data("y", i64, {-1, 1})));
}

const ir::Attrs kOptions = {{"lars_coeff", 0.02},
                            {"lars_weight_decay", 0.01},
                            {"epsilon", 1e-9},
                            {"exclude_from_weight_decay", ir::Strings{".b_"}}};

TEST(Lars, ProgramText) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  optim::Momentum momentum({.lr = 0.1, .mu = 0.8, .nesterov = true, .l2 = 1e-4});
  testing::minimize_for_worker(network(b), momentum, {{"lars", kOptions}}, 0, 1);
  std::vector<std::string> updates;
  for (const ir::Op& op : main.ops())
    if (op.def->updates_parameters) updates.push_back(ir::to_text(op));
  ASSERT_EQ(updates.size(), 4u);
  for (const char* part :
       {"[fc_1.w_0], [fc_1.w_0_velocity_0] = lars_momentum([fc_1.w_0], [fc_1.w_0@GRAD], "
        "[fc_1.w_0_velocity_0], learning_rate_0, _)",
        "epsilon=1e-09, l1=[0.0], l2=[1e-04], lars_coeff=0.02, lars_weight_decay=0.01, "
        "lr_factors=[1.0], mu=0.8, nesterov=true, with_decay=[1.0]"})
    EXPECT_TRUE(testing::contains(updates[0], part));
  EXPECT_TRUE(testing::contains(updates[1], "fc_1.b_0"));
  EXPECT_TRUE(testing::contains(updates[1], "with_decay=[0.0]"));
}

TEST(Lars, IsTheOptimizerOfThatName) {
  optim::Momentum momentum({.lr = 0.5, .mu = 0.8, .clip = optim::clip_by_global_norm(0.5)});
  optim::LarsMomentum lars({.lr = 0.5,
                            .mu = 0.8,
                            .lars_coeff = 0.02,
                            .lars_weight_decay = 0.01,
                            .epsilon = 1e-9,
                            .exclude = {".b_"},
                            .clip = optim::clip_by_global_norm(0.5)});
  const Training want = testing::train(network, lars, {});
  ASSERT_LT(want.losses.back(), want.losses.front());
  testing::expect_equal(testing::train(network, momentum, {.strategies = {{"lars", kOptions}}}),
                        want, 0, "one worker");
  testing::expect_equal(
      testing::train(network, momentum,
                     {.workers = 2, .strategies = {{"data_parallel"}, {"lars", kOptions}}}),
      want, 2e-6, "two workers");
}

TEST(Lars, ANameThatExcludesNothingIsTold) {
  const auto log_of = [](const char* strategy, optim::Optimizer&& optimizer, int rank) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    ::testing::internal::CaptureStderr();
    testing::minimize_for_worker(
        network(b), optimizer,
        {{"data_parallel"},
         {strategy, {{"exclude_from_weight_decay", ir::Strings{".b_0", "fc_0.w"}}}}},
        rank, 2);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string parts = log_of("lars", optim::Momentum(), 0);
  EXPECT_FALSE(testing::contains(parts, "excludes nothing")) << parts;
  const std::string ends = log_of("lamb", optim::Adam(), 0);
  EXPECT_TRUE(testing::contains(ends,
                                "lamb_configs] exclude_from_weight_decay has 'fc_0.w', but no "
                                "parameter has a name with this end, so it excludes nothing"));
  EXPECT_FALSE(testing::contains(ends, "has '.b_0'")) << ends;
  EXPECT_FALSE(testing::contains(log_of("lamb", optim::Adam(), 1), "excludes nothing"));
}

TEST(Lars, AnEmptyNameThatWouldExcludeAllIsRefused) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  optim::Momentum momentum;
  testing::expect_error(Error::Kind::kInvalidArgument,
                        {"lars_configs", "exclude_from_weight_decay", "empty name"}, [&] {
                          testing::minimize_for_worker(
                              network(b), momentum,
                              {{"lars", {{"exclude_from_weight_decay", ir::Strings{".b_0", ""}}}}},
                              1, 2);
                        });
}

TEST(Lars, RefusesOtherOptimizers) {
  const auto minimize = [](optim::Optimizer& optimizer, ir::Var (*net)(ir::Builder&)) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var loss = net(b);
    const std::string before = ir::to_text(main);
    try {
      testing::minimize_for_worker(loss, optimizer, {{"lars", {}}}, 0, 1);
    } catch (...) {
      EXPECT_EQ(ir::to_text(main), before);
      throw;
    }
  };
  optim::Adam adam;
  optim::Sgd sgd;
  optim::LarsMomentum lars;
  optim::Momentum momentum;
  testing::expect_error(Error::Kind::kInvalidArgument, {"lars", "momentum", "adam", "lamb"},
                        [&] { minimize(adam, network); });
  testing::expect_error(Error::Kind::kInvalidArgument, {"lars", "sgd", "use Momentum"},
                        [&] { minimize(sgd, network); });
  testing::expect_error(Error::Kind::kInvalidArgument, {"lars_momentum", "off"},
                        [&] { minimize(lars, network); });
  testing::expect_error(
      Error::Kind::kInvalidArgument, {"lars", "embedding_0.w_0", "is_sparse=False"}, [&] {
        minimize(momentum, [](ir::Builder& b) {
          return nn::mean(
              nn::embedding(b.data("y", i64, {-1, 1}), {.rows = 6, .dim = 12, .sparse = true}));
        });
      });
}

}  // namespace
}  // namespace fleetx::strategies::lars_test
