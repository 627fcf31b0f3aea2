// Stages of a network on workers of their own: they compute what one worker computes with the same
// micro-batches.
#include <gtest/gtest.h>

#include "fleetx/fleet/distributed_optimizer.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/runtime/planner.h"
#include "fleetx/strategies/pipeline_cut.h"
#include "fleetx/strategies/pipeline_schedule.h"
#include "fleetx/train/checkpoint.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::testing {
namespace {

using ir::Builder;
using ir::Var;
using strategies::Schedule;
using strategies::Slot;
using Network = std::function<Var(Builder&)>;

struct Job {
  int pp = 1, dp = 1;
  int64_t micro_batches = 4;
  std::string schedule = "1F1B";
  Network net;
  std::string optimizer = "momentum";
  optim::Clip clip = {};
  std::vector<strategies::Request> more = {};
  int steps = 6;
  int64_t batch = 24;
  std::string load = "", save = "";
  ir::Names fetch = {};  // beside the loss
};

std::string value_group(int pp) { return str("pp/", pp); }

// Communicators as the fleet makes them.
std::vector<SharedGroups> groups_of(int pp, int dp) {
  std::vector<std::shared_ptr<comm::Groups>> all;
  for (int rank = 0; rank < pp * dp; ++rank) all.push_back(std::make_shared<comm::Groups>());
  for (const std::string& name : {std::string("pp"), value_group(pp), std::string("dp")})
    for (int rank = 0; rank < pp * dp; ++rank) {
      const auto ranks = Mesh({{"pp", pp}, {"dp", dp}}, rank).group(name);
      if (ranks.front() != rank) continue;
      auto made = comm::make_local(static_cast<int>(ranks.size()), comm::Milliseconds(20'000));
      for (size_t i = 0; i < ranks.size(); ++i)
        all[static_cast<size_t>(ranks[i])]->add(name, std::move(made[i]));
    }
  return {all.begin(), all.end()};
}

struct Made {
  ir::Program main, startup;
  std::string loss;
};

Made make(const Job& job, int rank) {
  Made made;
  Builder b(made.main, made.startup);
  const Var loss = job.net(b);
  made.loss = loss.name();
  made.startup.set_seed(7);
  std::vector<strategies::Request> requests = job.more;
  requests.push_back(
      {"pipeline", {{"micro_batches", job.micro_batches}, {"schedule", job.schedule}}});
  if (job.dp > 1) requests.push_back({"data_parallel"});
  strategies::ResolvedStrategies resolved(requests,
                                          {.mesh = Mesh({{"pp", job.pp}, {"dp", job.dp}}, rank)});
  const auto optimizer = optim::make(job.optimizer, {{"lr", 0.1}}, {.clip = job.clip});
  strategies::minimize(
      {made.main, made.startup}, resolved, [&] { (void)optimizer->backward(loss); },
      [&] { optimizer->apply_gradients(autograd::trained(b)); });
  return made;
}

struct Result {
  std::vector<std::vector<float>> losses;  // by rank
  std::vector<std::map<std::string, Tensor>> fetched;
  std::vector<std::map<std::string, Tensor>> state;  // by rank
};

Result train(const Job& job) {
  const int world = job.pp * job.dp;
  const auto groups = groups_of(job.pp, job.dp);
  Result result;
  result.losses.resize(static_cast<size_t>(world));
  result.fetched.resize(static_cast<size_t>(world));
  result.state.resize(static_cast<size_t>(world));
  std::mutex building;
  run_workers(world, [&](int rank, const SharedGroups&) {
    const auto r = static_cast<size_t>(rank);
    std::unique_lock lock(building);
    const Made made = make(job, rank);
    lock.unlock();
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups[r]}});
    exe.run(made.startup, scope);
    if (!job.load.empty())
      train::load_checkpoint(train::latest_checkpoint(job.load), scope, {{"main", &made.main}},
                             groups[r]);
    const TrainOptions data{.workers = job.dp, .batch = job.batch};
    for (int step = 0; step < job.steps; ++step) {
      ir::Names fetch = job.fetch;
      fetch.push_back(made.loss);
      const auto out = exe.run(made.main, scope, batch_of(step, data, rank % job.dp), fetch);
      result.losses[r].push_back(out.back().item<float>());
      for (size_t i = 0; i + 1 < out.size(); ++i)
        result.fetched[r].insert_or_assign(fetch[i], out[i].clone());
    }
    if (!job.save.empty())
      train::save_checkpoint(job.save, scope, {{"main", &made.main}}, {},
                             {.writes = rank == 0, .groups = groups[r]});
    for (const std::string& name : scope.names())
      result.state[r].emplace(name, scope.get(name).clone());
    result.state[r].erase("@worker_weight@");
  });
  return result;
}

void expect_same_training(const Result& got, const Result& want, double tolerance,
                          const std::string& what) {
  std::set<std::string> seen;
  for (size_t rank = 0; rank < got.losses.size(); ++rank) {
    for (const auto& [name, value] : got.state[rank]) {
      seen.insert(name);
      ASSERT_TRUE(want.state[0].contains(name)) << name;
      expect_close(value, want.state[0].at(name), tolerance, str(what, ", ", name));
    }
  }
  EXPECT_EQ(seen.size(), want.state[0].size()) << what;
  // Each worker has the loss of its part of the batch.
  for (size_t i = 0; i < want.losses[0].size(); ++i) {
    double mean = 0;
    for (const auto& losses : got.losses) mean += static_cast<double>(losses[i]);
    mean /= static_cast<double>(got.losses.size());
    EXPECT_NEAR(mean, want.losses[0][i], tolerance * std::abs(want.losses[0][i]))
        << what << ", loss of step " << i;
  }
}

// Four layers, two on each of two stages.
Var guarded(Builder& b) {
  const Var x = b.data("x", f32, {-1, 12}), y = b.data("y", i64, {-1, 1});
  Var h;
  {
    const auto stage = b.in_stage(0);
    h = nn::fc(nn::fc(x, {.size = 16, .act = "tanh"}), {.size = 8, .act = "relu"});
  }
  const auto stage = b.in_stage(1);
  h = nn::fc(h, {.size = 8, .act = "tanh"});
  return nn::mean(nn::softmax_cross_entropy(nn::fc(h, {.size = 5}), y));
}

TEST(Pipeline, Schedules) {
  const auto text = [](Schedule schedule, int stage, int stages, int micro_batches) {
    std::string out;
    for (const Slot& slot : strategies::slots_of(schedule, {stage, stages, micro_batches}))
      out += str(slot.forward ? "F" : "B", slot.micro_batch, " ");
    return out;
  };
  const auto both = Schedule::kForwardThenBackward, one = Schedule::kOneForwardOneBackward;
  EXPECT_EQ(text(both, 0, 2, 3), "F0 F1 F2 B0 B1 B2 ");
  EXPECT_EQ(text(one, 0, 2, 3), "F0 F1 B0 F2 B1 B2 ");
  EXPECT_EQ(text(one, 1, 2, 3), "F0 B0 F1 B1 F2 B2 ");
  EXPECT_EQ(text(one, 0, 4, 4), "F0 F1 F2 F3 B0 B1 B2 B3 ");
  EXPECT_EQ(text(one, 2, 4, 4), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(text(one, 0, 1, 2), "F0 B0 F1 B1 ");
}

TEST(Pipeline, TwoStagesComputeWhatOneDoes) {
  Job job{.net = guarded};
  const Result one = train(job);
  job.pp = 2;
  for (const char* schedule : {"1F1B", "F-then-B"}) {
    job.schedule = schedule;
    expect_same_training(train(job), one, 1e-6, schedule);
  }
}

}  // namespace
}  // namespace fleetx::testing
