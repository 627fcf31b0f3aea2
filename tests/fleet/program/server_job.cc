// A server or worker of a job in sync mode whose workers have unequal numbers of batches: worker 0
// has 5, worker 1 has 12. The gradient of `w` is the number of the worker, plus 1.
#include <cstdio>
#include <exception>
#include <memory>

#include "fleetx/fleet/fleet.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"

using namespace fleetx;

namespace {

void run() {
  fleet::init({});
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 1});
  const ir::Var y = nn::fc(x, {.size = 1, .bias = false});
  const ir::Var loss = nn::mean(y);
  fleet::distributed_optimizer(std::make_shared<optim::Sgd>(optim::Sgd({.lr = 1.0})), {},
                               fleet::ServerConfig{.mode = "sync"})
      .minimize(loss);
  if (fleet::is_server()) {
    fleet::init_server();
    return fleet::run_server();
  }
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  fleet::init_worker(scope);
  const int rank = fleet::worker_index();
  const std::string w = main.parameters().front()->name;
  fleet::util().barrier();
  const float first = scope.get(w).item<float>();
  Tensor sample(f32, {1, 1});
  sample.data<float>()[0] = static_cast<float>(rank + 1);
  const int steps = rank == 0 ? 5 : 12;
  for (int step = 0; step < steps; ++step) {
    // What one worker does by itself is no meeting.
    if (rank == 0 && step == 2) fleet::util().print_on_rank("worker 0 goes on", 0);
    if (rank == 0 && step == 3) fleet::util().get_file_shard({"a", "b"});
    exe.run(main, scope, {{"x", sample}}, {loss.name()});
  }
  const double all = fleet::util().all_reduce(std::vector<double>{static_cast<double>(steps)})[0];
  fleet::pull_parameters(scope);
  if (rank == 0) std::printf("steps %g moved %g\n", all, scope.get(w).item<float>() - first);
  fleet::util().barrier();
  fleet::stop_worker();
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "server_job: %s\n", e.what());
    return 1;
  }
}
