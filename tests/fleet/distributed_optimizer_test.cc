#include "fleetx/fleet/distributed_optimizer.h"

#include <gtest/gtest.h>

#include "fleetx/fleet/fleet.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"

namespace fleetx::fleet {
namespace {

std::vector<std::string> names_of(const std::vector<strategies::Request>& requests) {
  std::vector<std::string> names;
  for (const strategies::Request& r : requests) names.push_back(r.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(DistributedOptimizer, AsksForWhatTheStrategySays) {
  DistributedStrategy s;
  EXPECT_EQ(names_of(requests_of(s, 1)), Names{});
  EXPECT_EQ(names_of(requests_of(s, 4)), Names{"data_parallel"});
  s.sync_batch_norm = true;
  s.recompute = true;
  s.recompute_configs.checkpoints = {"a"};
  EXPECT_EQ(names_of(requests_of(s, 1)), Names{"recompute"});
  EXPECT_EQ(names_of(requests_of(s, 2)), (Names{"recompute", "sync_batch_norm", "data_parallel"}));
  s.fuse_grad_size_in_MB = 16;
  EXPECT_EQ(requests_of(s, 2).back().options.at("fuse_size_in_MB").as<int64_t>(), 16);
}

TEST(DistributedOptimizer, RefusesWhatIsNotBuilt) {
  for (const char* name : {"amp", "lars", "lamb", "dgc", "localsgd", "adaptive_localsgd",
                           "gradient_merge", "sharding", "pipeline", "auto", "a_sync"}) {
    DistributedStrategy s;
    s.set(name, true);
    for (const int workers : {1, 2}) {
      try {
        requests_of(s, workers);
        FAIL() << name << " was not refused";
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("does not have it"), std::string::npos) << e.what();
      }
    }
  }
}

struct Net {
  ir::Program main, startup;
  ir::Builder b{main, startup};
  ir::Var loss = nn::mean(nn::fc(b.data("x", f32, {-1, 4}), {.size = 3}));
};

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
    EXPECT_EQ(optimizer.applied().size(), 1u);
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
