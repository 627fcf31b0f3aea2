#include "fleetx/fleet/distributed_optimizer.h"

#include <gtest/gtest.h>

#include "fleetx/fleet/fleet.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "tests/support/expect_error.h"

namespace fleetx::fleet {
namespace {

std::vector<std::string> names_of(const std::vector<strategies::Request>& requests) {
  std::vector<std::string> names;
  for (const strategies::Request& r : requests)
    if (!r.idle) names.push_back(r.name);
  return names;
}

using Names = std::vector<std::string>;

struct Net {
  ir::Program main, startup;
  ir::Builder b{main, startup};
  ir::Var loss = nn::mean(nn::fc(b.data("x", f32, {-1, 4}), {.size = 3}));
};
TEST(DistributedOptimizer, AsksForWhatTheStrategySays) {
  DistributedStrategy s;
  const auto requests_of = [](const DistributedStrategy& strategy, int workers) {
    return fleet::requests_of(strategy, mesh_of(strategy, workers, 0));
  };
  EXPECT_EQ(names_of(requests_of(s, 1)), Names{});
  EXPECT_EQ(names_of(requests_of(s, 4)), Names{"data_parallel"});
  s.sync_batch_norm = true;
  s.recompute = true;
  s.recompute_configs.checkpoints = {"a"};
  EXPECT_EQ(names_of(requests_of(s, 1)), Names{"recompute"});
  EXPECT_EQ(names_of(requests_of(s, 2)), (Names{"data_parallel", "recompute", "sync_batch_norm"}));
  s.fuse_grad_size_in_MB = 16;
  EXPECT_EQ(requests_of(s, 2).front().options.at("fuse_size_in_MB").as<int64_t>(), 16);
}

TEST(DistributedOptimizer, TheMeshFollowsFromTheDegrees) {
  DistributedStrategy s;
  s.hybrid_configs.mp_degree = 2;
  s.hybrid_configs.pp_degree = 2;
  const Mesh mesh = mesh_of(s, 8, 5);
  EXPECT_EQ(mesh.size("dp"), 2);
  EXPECT_EQ(mesh.group("mp"), (std::vector<int>{4, 5}));  // neighbours
  s.hybrid_configs.dp_degree = 3;
  testing::expect_error(Error::Kind::kInvalidArgument,
                        {"pp 2", "sharding 1", "dp 3", "mp 2", "8 workers"},
                        [&] { mesh_of(s, 8, 0); });
}

// What was asked for is what is made, once, in the same order on all ranks.
TEST(DistributedOptimizer, ConnectsTheGroupsThatStrategiesNeed) {
  Net net;
  std::vector<std::string> connected;
  DistributedOptimizer optimizer(std::make_shared<optim::Sgd>(), {}, fleetx::mesh_of({}, 4, 1),
                                 [&](const Mesh& mesh, const std::vector<std::string>& groups) {
                                   EXPECT_EQ(mesh.world(), 4);
                                   connected = groups;
                                 });
  optimizer.minimize(net.loss);
  EXPECT_EQ(connected, Names{"dp"});
}

TEST(DistributedOptimizer, RefusesWhatIsNotBuilt) {
  for (const char* name : {"elastic"}) {
    DistributedStrategy s;
    s.set(name, true);
    for (const int workers : {1, 2}) {
      try {
        requests_of(s, mesh_of(s, workers, 0));
        FAIL() << name << " was not refused";
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("does not have it"), std::string::npos) << e.what();
      }
    }
  }
}

TEST(DistributedOptimizer, ProgramsAreAsTheyWereAfterAnError) {
  Net net;
  const std::string before = ir::to_text(net.main), startup = ir::to_text(net.startup);
  DistributedStrategy s;
  s.recompute = true;
  s.recompute_configs.checkpoints = {"no_such_variable"};
  DistributedOptimizer optimizer(std::make_shared<optim::Sgd>(), s, Mesh({{"dp", 2}}, 0));
  EXPECT_THROW(optimizer.minimize(net.loss), Error);
  EXPECT_EQ(ir::to_text(net.main), before);
  EXPECT_EQ(ir::to_text(net.startup), startup);
}

TEST(DistributedOptimizer, MakesTheProgramOfEveryRankAnywhere) {
  Net first, second;
  for (Net* net : {&first, &second}) {
    DistributedOptimizer optimizer(std::make_shared<optim::Sgd>(), {}, Mesh({{"dp", 1000}}, 999));
    optimizer.minimize(net->loss);
    EXPECT_EQ(optimizer.applied().size(), 2u);  // on gradients and on updates
  }
  EXPECT_EQ(ir::to_text(first.main), ir::to_text(second.main));
}

TEST(Fleet, NeedsInit) {
  finalize();
  EXPECT_FALSE(is_initialized());
  EXPECT_THROW(worker_index(), Error);
  EXPECT_THROW(distributed_optimizer(optim::Sgd()), Error);
  init({.is_collective = true});
  EXPECT_EQ(worker_index(), 0);
  EXPECT_EQ(worker_num(), 1);
  EXPECT_TRUE(is_first_worker());
  EXPECT_EQ(util().all_reduce(std::vector<double>{3})[0], 3);
  barrier_worker();
  Net net;
  distributed_optimizer(optim::Sgd()).minimize(net.loss);  // alone: as without fleet
  EXPECT_EQ(ir::to_text(net.main).find("all_reduce"), std::string::npos);
  finalize();
}

}  // namespace
}  // namespace fleetx::fleet
