// One process of a job with many workers and servers; bench/many_job.py is the same in Python.
// usage: bench_ps_many FOLDER STEPS. Notes in the folder when a worker has found its servers, and
// what each process used.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/models/wide_deep.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"

namespace {

using namespace fleetx;

constexpr int64_t kRows = 100001, kDim = 10, kBatch = 16;

void note(const std::string& folder, const std::string& name, double value) {
  std::ofstream(folder + "/" + name) << std::fixed << value << '\n';
}

double memory_mib() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;)
    if (word == "Pss:") {
      double kib = 0;
      in >> kib;
      return kib / 1024;
    }
  return 0;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

runtime::Feeds batch(uint64_t number) {
  const Philox random(1, number);
  Tensor dense(f32, {kBatch, 13}), ids(i64, {kBatch, 26}), label(f32, {kBatch, 1});
  uint64_t i = 0;
  for (float& x : dense.data<float>()) x = random.normal(i++);
  for (int64_t& id : ids.data<int64_t>()) id = static_cast<int64_t>(random.bits(i++)) % kRows;
  for (float& x : label.data<float>()) x = static_cast<float>(random.bits(i++) % 2);
  return {{"dense", std::move(dense)}, {"ids", std::move(ids)}, {"label", std::move(label)}};
}

void serve(const std::string& folder) {
  fleet::init_server();
  fleet::run_server();
  note(folder, str("server-", fleet::role().server_index()), memory_mib());
}

void work(const ir::Program& main, const ir::Program& startup, const std::string& loss,
          const std::string& folder, int steps) {
  runtime::Executor exe;
  runtime::Scope scope;
  exe.run(startup, scope);
  fleet::init_worker(scope);
  const std::string rank = std::to_string(fleet::worker_index());
  note(folder, "ready-" + rank, now());
  for (int step = 0; step < steps; ++step)
    exe.run(main, scope, batch(static_cast<uint64_t>(1000 * fleet::worker_index() + step)), {loss});
  note(folder, "worker-" + rank, memory_mib());
  fleet::stop_worker();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    check_arg(argc == 3, "usage: bench_ps_many FOLDER STEPS");
    fleet::init();
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var dense = b.data("dense", f32, {-1, 13}), ids = b.data("ids", i64, {-1, 26});
    const models::WideDeepOutputs net = models::wide_deep(
        dense, ids, b.data("label", f32, {-1, 1}), {.rows = kRows, .dim = kDim, .hidden = {64}});
    fleet::DistributedStrategy strategy;
    strategy.set("a_sync", true);
    fleet::distributed_optimizer(optim::Sgd({.lr = 0.01}), strategy).minimize(net.loss);
    if (fleet::is_server())
      serve(argv[1]);
    else
      work(main, startup, net.loss.name(), argv[1], std::atoi(argv[2]));
  } catch (const std::exception& e) {
    std::cerr << argv[0] << ": " << e.what() << '\n';
    return 1;
  }
}
