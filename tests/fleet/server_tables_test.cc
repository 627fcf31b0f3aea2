#include "fleetx/fleet/server_tables.h"

#include <gtest/gtest.h>

#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "tests/support/expect_error.h"

namespace fleetx::fleet {
namespace {

using testing::expect_error;

struct Lookup {
  ir::Program main, startup;
  ir::Builder b{main, startup};

  explicit Lookup(optim::Optimizer& optimizer, const nn::Init& init = nn::init::uniform(-1, 1)) {
    const ir::Var ids = b.data("ids", i64, {-1});
    const ir::Var rows = nn::embedding(
        ids, {.rows = 100, .dim = 4, .sparse = true, .weight_attr = {.init = init}, .name = "t"});
    const ir::Var h = nn::fc(rows, {.size = 8192, .name = "a"});
    optimizer.minimize(nn::mean(nn::fc(h, {.size = 1, .name = "b"})));
  }
  ps::JobSpec tables(const ServerConfig& config = {}, int servers = 2) {
    return server_tables(main, startup, config, 3, servers);
  }
};

TEST(ServerTables, AreReadOffTheProgram) {
  optim::Adam adam({.lr = 0.1, .beta1 = 0.8, .l2 = 0.01});
  Lookup net(adam);
  const ps::JobSpec job = net.tables();
  EXPECT_EQ(job.workers, 3);
  EXPECT_EQ(job.mode, ps::Mode::kSync);
  ASSERT_EQ(job.sparse.size(), 1u);
  EXPECT_EQ(job.sparse[0].name, "t.w_0");
  EXPECT_EQ(job.sparse[0].dim, 4);
  EXPECT_EQ(job.sparse[0].initializer.kind, ps::Initializer::Kind::kUniform);
  const ps::UpdateRule& rule = *job.sparse[0].rule;
  EXPECT_EQ(rule.states(), (std::vector<float>{0, 0}));
  EXPECT_EQ(rule.scalars(), (std::vector<float>{0.8f, 0.999f}));
  EXPECT_NE(rule.text().find("beta1=0.8"), std::string::npos) << rule.text();
  EXPECT_NE(rule.text().find("l2=0.01"), std::string::npos) << rule.text();
  ASSERT_EQ(job.dense.size(), 1u);
  EXPECT_EQ(job.dense[0].params.size(), 4u);
  // 4 x 8192 elements are cut in two, 8192 are not.
  EXPECT_EQ(job.blocks()[0].size(), 5u);
}

TEST(ServerTables, OfGeoAreDenseAndAddedUp) {
  optim::Sgd sgd({.lr = 0.1});
  Lookup net(sgd);
  const ps::JobSpec job = net.tables({.mode = "geo", .k_steps = 10});
  EXPECT_TRUE(job.sparse.empty());
  ASSERT_EQ(job.dense.size(), 1u);
  EXPECT_EQ(job.dense[0].params.size(), 5u);
  EXPECT_EQ(job.dense[0].params[0].rule->text(), ps::add_rule()->text());
}

// A norm is that of a whole parameter.
TEST(ServerTables, KeepParametersWholeForNorms) {
  optim::LarsMomentum lars({.lr = 0.1});
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 400});
  lars.minimize(nn::mean(nn::fc(x, {.size = 400, .bias = false})));
  const ps::JobSpec job = server_tables(main, startup, {}, 1, 4);
  EXPECT_FALSE(job.slicing.slice_var_up);
  EXPECT_EQ(job.blocks()[0].size(), 1u);
}

TEST(ServerTables, ARowMustBeAFunctionOfItsId) {
  optim::Sgd sgd;
  Lookup net(sgd, nn::init::assign(std::vector<double>(400)));
  expect_error(Error::Kind::kInvalidArgument, {"'t.w_0'", "assign_value", "uniform"},
               [&] { net.tables(); });
}

// Parameters and optimizer agree here; activations, and who reads which parameter, may not.
TEST(ServerTables, TellOtherComputationsFromWhatWorkersMayDoDifferently) {
  struct Way {
    std::string act = "relu", first = "a", second = "b";
    int64_t batch = -1, seed = 1;
    bool evaluates = false, prints = false;
  };
  const auto text = [](const Way& way) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var x = b.data("x", f32, {way.batch, 4});
    const ir::Var h = nn::fc(x, {.size = 4, .act = way.act, .name = way.first});
    if (way.evaluates) nn::mean(nn::softmax(h));
    ir::Var loss =
        nn::fc(nn::dropout(h, {.p = 0.5, .seed = way.seed}), {.size = 4, .name = way.second});
    loss = nn::mean(loss);
    if (way.prints) loss = nn::print(loss);
    optim::Sgd({.lr = 0.1}).minimize(loss);
    ps::JobSpec job = server_tables(main, startup, {}, 2, 1);
    // Where the order of parameters is another, servers have told so before.
    job.dense.clear();
    return job.text();
  };
  const std::string usual = text({});
  EXPECT_EQ(usual, text({.batch = 32, .seed = 2, .evaluates = true, .prints = true}));
  EXPECT_NE(usual.find("computes fc a.w_0 a.b_0\n"), std::string::npos) << usual;
  EXPECT_EQ(ps::first_difference(usual, text({.act = "tanh"})),
            "server: computes relu\nworker: computes tanh");
  EXPECT_NE(usual, text({.first = "b", .second = "a"}));
}

// The rule of a server is the formula of the op.
TEST(ServerTables, RulesComputeWhatTheOptimizerDoes) {
  optim::Momentum momentum({.lr = 0.5, .mu = 0.9, .l2 = 0.1});
  Lookup net(momentum);
  const ps::UpdateRulePtr rule = net.tables().dense[0].params[0].rule;
  float record[] = {1, 2, 0.5f, 0.25f};  // two values, their velocities
  const float gradient[] = {4, 8};
  float* const records[] = {record};
  const float* const gradients[] = {gradient};
  rule->update({.width = 2, .lr = 0.5f, .records = records, .gradients = gradients});
  const float v0 = 0.9f * 0.5f + (4 + 0.1f * 1), v1 = 0.9f * 0.25f + (8 + 0.1f * 2);
  EXPECT_NEAR(record[2], v0, 1e-6);
  EXPECT_NEAR(record[3], v1, 1e-6);
  EXPECT_NEAR(record[0], 1 - 0.5f * v0, 1e-6);
  EXPECT_NEAR(record[1], 2 - 0.5f * v1, 1e-6);
}

TEST(ServerConfig, FollowsASync) {
  DistributedStrategy s;
  EXPECT_EQ(server_config_of(s).mode, "async");
  s.set("a_sync", false);
  EXPECT_EQ(server_config_of(s).mode, "sync");
  s.set("a_sync", true);
  s.set_configs("a_sync_configs", {{"k_steps", 20}});
  EXPECT_EQ(server_config_of(s).mode, "geo");
  EXPECT_EQ(server_config_of(s).k_steps, 20);
  s.a_sync = false;
  expect_error(Error::Kind::kInvalidArgument, {"k_steps is 20", "a_sync is off"},
               [&] { server_config_of(s); });
  s.set("a_sync", true);
  EXPECT_EQ(server_config_of(s).staleness, -1);
  s.set_configs("a_sync_configs", {{"staleness", 3}});
  EXPECT_EQ(server_config_of(s).mode, "async");
  EXPECT_EQ(server_config_of(s).staleness, 3);
  s.set("a_sync", false);
  expect_error(Error::Kind::kInvalidArgument, {"staleness is 3", "the mode sync"},
               [&] { server_config_of(s); });
  expect_error(Error::Kind::kInvalidArgument, {"min_block_size is 100", "8192"},
               [] { check({.min_block_size = 100}); });
  expect_error(Error::Kind::kInvalidArgument, {"dc_asgd", "the mode is geo"},
               [] { check({.mode = "geo", .k_steps = 4, .dc_asgd = true}); });
  expect_error(Error::Kind::kInvalidArgument, {"split_method is 'Random'", "HashName"},
               [] { check({.split_method = "Random"}); });
}

}  // namespace
}  // namespace fleetx::fleet
