// Trainings on meshes of stages, copies and parts of layers, by threads of the test. What they
// leave is read from their checkpoint, as one worker loads it: whole variables.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "fleetx/train/checkpoint.h"
#include "tests/strategies/parallel_training.h"
#include "tests/support/temp_dir.h"

namespace fleetx::testing {

struct MeshJob {
  int pp = 1, dp = 1, mp = 1;
  int64_t micro_batches = 4;  // of all copies together; 0: no pipeline
  std::string schedule = "1F1B";
  std::function<ir::Var(ir::Builder&, int mp)> net;
  std::string optimizer = "momentum";
  optim::Clip clip = {};
  std::vector<strategies::Request> more = {};
  int steps = 5;
  std::string load = "", save = "";

  int world() const { return pp * dp * mp; }
  Mesh mesh(int rank) const { return Mesh({{"pp", pp}, {"dp", dp}, {"mp", mp}}, rank); }
  std::vector<strategies::Request> requests() const {
    std::vector<strategies::Request> all = more;
    if (micro_batches > 0)
      all.push_back({"pipeline", {{"micro_batches", micro_batches / dp}, {"schedule", schedule}}});
    if (dp > 1) all.push_back({"data_parallel"});
    if (mp > 1) all.push_back({"tensor_parallel"});
    return all;
  }
  // The same on one worker. Of the strategies those that change numbers stay.
  MeshJob alone() const {
    MeshJob one = *this;
    one.pp = one.dp = one.mp = 1;
    std::erase_if(one.more, [](const strategies::Request& r) {
      return r.name == "sharding" || r.name == "fp16_allreduce";
    });
    return one;
  }
};

struct MeshWorker {
  ir::Program main, startup;
  std::string loss;
  std::vector<std::string> groups;

  MeshWorker(const MeshJob& job, int rank) {
    ir::Builder b(main, startup);
    const ir::Var l = job.net(b, job.mp);
    loss = l.name();
    startup.set_seed(7);
    strategies::ResolvedStrategies resolved(job.requests(), {.mesh = job.mesh(rank)});
    resolved.validate(main);
    const auto optimizer = optim::make(job.optimizer, {{"lr", 0.1}}, {.clip = job.clip});
    strategies::minimize(
        {main, startup}, resolved, [&] { (void)optimizer->backward(l); },
        [&] { optimizer->apply_gradients(autograd::trained(b)); });
    groups = resolved.groups();
  }
};

// Communicators of all ranks of a mesh, as the fleet makes them.
inline std::vector<SharedGroups> groups_of(const Mesh& mesh,
                                           const std::vector<std::string>& names) {
  std::vector<std::shared_ptr<comm::Groups>> all;
  for (int rank = 0; rank < mesh.world(); ++rank) all.push_back(std::make_shared<comm::Groups>());
  for (const std::string& name : names)
    for (int rank = 0; rank < mesh.world(); ++rank) {
      const auto ranks = Mesh(mesh.axes(), rank).group(name);
      if (ranks.front() != rank) continue;
      auto made = comm::make_local(static_cast<int>(ranks.size()), comm::Milliseconds(20'000));
      for (size_t i = 0; i < ranks.size(); ++i)
        all[static_cast<size_t>(ranks[i])]->add(name, std::move(made[i]));
    }
  return {all.begin(), all.end()};
}

// Bytes of parameters, of other state: what a rank has in memory.
struct Held {
  size_t parameters = 0, others = 0;
};

struct MeshResult {
  std::vector<float> losses;            // mean over the copies
  std::map<std::string, Tensor> state;  // whole
  std::vector<Held> held;               // by rank
};

inline MeshResult train(const MeshJob& job) {
  std::vector<std::unique_ptr<MeshWorker>> workers;
  for (int rank = 0; rank < job.world(); ++rank)
    workers.push_back(std::make_unique<MeshWorker>(job, rank));
  const auto groups = groups_of(job.mesh(0), workers[0]->groups);
  std::vector<std::vector<float>> losses(static_cast<size_t>(job.world()));
  MeshResult result;
  result.held.resize(static_cast<size_t>(job.world()));
  TempDir folder;
  const std::string to = job.save.empty() ? folder.path() : job.save;
  run_workers(job.world(), [&](int rank, const SharedGroups&) {
    const auto r = static_cast<size_t>(rank);
    const MeshWorker& w = *workers[r];
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups[r]}});
    exe.run(w.startup, scope);
    if (!job.load.empty())
      train::load_checkpoint(train::latest_checkpoint(job.load), scope, {{"main", &w.main}},
                             groups[r]);
    const TrainOptions data{.workers = job.dp};
    for (int step = 0; step < job.steps; ++step)
      losses[r].push_back(
          exe.run(w.main, scope, batch_of(step, data, job.mesh(rank).coordinate("dp")), {w.loss})[0]
              .item<float>());
    for (const std::string& name : scope.names())
      if (const ir::VarInfo* v = w.main.find(name); v != nullptr)
        (v->is_parameter ? result.held[r].parameters : result.held[r].others) +=
            scope.get(name).bytes();
    train::save_checkpoint(to, scope, {{"main", &w.main}}, {},
                           {.writes = rank == 0, .groups = groups[r]});
  });
  const MeshWorker one(job.alone(), 0);
  runtime::Scope whole;
  runtime::Executor().run(one.startup, whole);
  train::load_checkpoint(train::latest_checkpoint(to), whole, {{"main", &one.main}});
  for (const ir::VarInfo* v : one.main.vars())
    if (v->persistable) result.state.emplace(v->name, whole.get(v->name).clone());
  result.losses.assign(static_cast<size_t>(job.steps), 0);
  for (const auto& of_rank : losses)
    for (size_t i = 0; i < of_rank.size(); ++i)
      result.losses[i] += of_rank[i] / static_cast<float>(job.world());
  return result;
}

inline void expect_equal(const MeshResult& got, const MeshResult& want, double tolerance,
                         const std::string& what) {
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance * std::abs(want.losses[i]))
        << what << ", loss of step " << i;
  ASSERT_EQ(got.state.size(), want.state.size()) << what;
  for (const auto& [name, value] : got.state)
    expect_close(value, want.state.at(name), tolerance, what + ", " + name);
}

}  // namespace fleetx::testing
