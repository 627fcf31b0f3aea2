// One worker of a training that a test drives step by step: its program, its state, and checkpoints
// of it. Without strategies it is a worker alone, of which a test can make a reference.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fleetx/train/checkpoint.h"
#include "tests/strategies/parallel_training.h"

namespace fleetx::testing {

using Network = std::function<ir::Var(ir::Builder&)>;
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>()>;

class Worker {
 public:
  Worker(const Network& network, const MakeOptimizer& make_optimizer,
         const std::vector<strategies::Request>& requests, int rank, int workers,
         const SharedGroups& groups)
      : groups_(groups), exe_({.plan = {.groups = groups}}) {
    const ir::Var loss = network(b_);
    loss_ = loss.name();
    startup_.set_seed(static_cast<uint64_t>(rank + 1));  // worker 0's values are shared
    const auto optimizer = make_optimizer();
    if (requests.empty())
      optimizer->minimize(loss);
    else
      minimize_for_worker(loss, *optimizer, requests, rank, workers);
    exe_.run(startup_, scope_);
  }

  float step(const runtime::Feeds& feeds) {
    return exe_.run(main_, scope_, feeds, {loss_})[0].item<float>();
  }
  Tensor fetch(const runtime::Feeds& feeds, const std::string& name) {
    return exe_.run(main_, scope_, feeds, {name})[0];
  }
  const ir::Program& main() const { return main_; }
  Tensor get(const std::string& name) const { return scope_.get(name); }
  std::map<std::string, Tensor> state() const {
    std::map<std::string, Tensor> all;
    for (const ir::VarInfo* v : main_.vars())
      if (v->persistable) all.emplace(v->name, get(v->name).clone());
    return all;
  }
  void set(const std::string& name, const Tensor& value) { scope_.set(name, value); }
  ir::Names parameters() const {
    ir::Names names;
    for (const ir::VarInfo* v : main_.parameters()) names.push_back(v->name);
    return names;
  }

  void save(const std::string& dir, int rank) {
    train::save_checkpoint(dir, scope_, {{"main", &main_}}, {},
                           {.writes = rank == 0, .groups = groups_});
    if (groups_) groups_->find("dp")->barrier();
  }
  void load(const std::string& dir) {
    train::load_checkpoint(train::latest_checkpoint(dir), scope_, {{"main", &main_}}, groups_);
  }

 private:
  SharedGroups groups_;
  ir::Program main_, startup_;
  ir::Builder b_{main_, startup_};
  std::string loss_;
  runtime::Scope scope_;
  runtime::Executor exe_;
};

// What a run of several workers leaves: losses by step, then by worker; state by worker.
struct Trace {
  std::vector<std::vector<float>> losses;
  std::vector<std::map<std::string, Tensor>> state;
};

struct Job {
  Network network;
  MakeOptimizer optimizer;
  std::vector<strategies::Request> strategies;
  int workers = 2;
  int first = 0, last = 12;  // steps
  std::string load = "", save = "";
  TrainOptions data = {};
};

inline Trace run(const Job& o) {
  Trace trace;
  trace.losses.assign(static_cast<size_t>(o.last - o.first),
                      std::vector<float>(static_cast<size_t>(o.workers)));
  trace.state.resize(static_cast<size_t>(o.workers));
  run_workers(o.workers, [&](int rank, const SharedGroups& groups) {
    TrainOptions data = o.data;
    data.workers = o.workers;
    Worker worker(o.network, o.optimizer, o.strategies, rank, o.workers, groups);
    if (!o.load.empty()) worker.load(o.load);
    const auto r = static_cast<size_t>(rank);
    for (int step = o.first; step < o.last; ++step)
      trace.losses[static_cast<size_t>(step - o.first)][r] =
          worker.step(batch_of(step, data, rank));
    trace.state[r] = worker.state();
    if (!o.save.empty()) worker.save(o.save, rank);
  });
  return trace;
}

// A batch from which no finite gradient follows.
inline runtime::Feeds bad_batch(runtime::Feeds feeds) {
  feeds[0].second.data<float>()[0] = std::numeric_limits<float>::infinity();
  return feeds;
}

// Bit for bit.
inline void expect_same(const Trace& got, const Trace& want) {
  EXPECT_EQ(got.losses, want.losses);
  for (size_t r = 0; r < want.state.size(); ++r)
    for (const auto& [name, value] : want.state[r])
      expect_close(got.state[r].at(name), value, 0, str(name, " of worker ", r));
}

// Stopped after `stop` steps and resumed, the run is the same.
inline void expect_resumes(const Job& o, int stop, const std::string& folder) {
  const Trace whole = run(o);
  Job first = o, second = o;
  first.last = second.first = stop;
  first.save = second.load = folder;
  run(first);
  const Trace resumed = run(second);
  const Trace rest{{whole.losses.begin() + (stop - o.first), whole.losses.end()}, whole.state};
  expect_same(resumed, rest);
}

// The mean over workers, in double.
inline Tensor mean_of(const std::vector<Tensor>& all) {
  Tensor mean(f32, all[0].shape());
  for (int64_t i = 0; i < mean.shape().numel(); ++i) {
    double sum = 0;
    for (const Tensor& t : all) sum += static_cast<double>(t.data<float>()[static_cast<size_t>(i)]);
    mean.data<float>()[static_cast<size_t>(i)] =
        static_cast<float>(sum / static_cast<double>(all.size()));
  }
  return mean;
}

}  // namespace fleetx::testing
