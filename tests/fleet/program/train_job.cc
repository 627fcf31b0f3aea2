// A worker for the tests of fleet/: trains a small network on its share of every batch and prints
// what came out, with all digits. The second argument says what else it is to do:
//   leave N     this worker, if it is number 1, ends after step N
//   kill N      the same, but it is killed; the others do not end when they are told to, so that
//               they find out themselves
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "fleetx/base/rng.h"
#include "fleetx/fleet/describe_job.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"

using namespace fleetx;

namespace {

constexpr int64_t kBatch = 24, kWidth = 12;

Tensor samples(int step, int64_t first, int64_t count) {
  Tensor x(f32, {count, kWidth});
  const Philox random(7, static_cast<uint64_t>(step));
  for (int64_t i = 0; i < count * kWidth; ++i)
    x.data<float>()[static_cast<size_t>(i)] =
        random.normal(static_cast<uint64_t>(first * kWidth + i));
  return x;
}

void run(const std::string& what, int at) {
  fleet::init({.is_collective = true});
  const int rank = fleet::worker_index();
  if (what == "kill") std::signal(SIGTERM, SIG_IGN);
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, kWidth});
  const ir::Var h = nn::dropout(nn::fc(x, {.size = 40, .act = "tanh"}), {.p = 0.2});
  const ir::Var loss = nn::mean(nn::square(nn::fc(h, {.size = 1})));
  auto optimizer = fleet::distributed_optimizer(optim::Momentum({.lr = 0.01}));
  optimizer.minimize(loss);

  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  const int64_t share = kBatch / fleet::worker_num();
  for (int step = 0; step < 20; ++step) {
    if (rank == 1 && step == at && what == "leave") return;
    if (rank == 1 && step == at && what == "kill") std::raise(SIGKILL);
    const auto out =
        exe.run(main, scope, {{"x", samples(step, rank * share, share)}}, {loss.name()});
    const double mean = fleet::util().all_reduce(std::vector<double>{out[0].item<float>()})[0] /
                        fleet::worker_num();
    if (rank == 0) std::printf("loss %.9g\n", mean);
  }
  double total = 0;
  for (const ir::VarInfo* p : main.parameters()) {
    const Tensor values = scope.get(p->name);
    for (const float value : values.data<float>()) total += value * value;
  }
  if (rank == 0) std::printf("parameters %.9g\n", total);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : -1);
    return 0;
  } catch (const fleet::JobDescribed& end) {  // fleetrun --plan
    return end.exit_code();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_job: %s\n", e.what());
    return 1;
  }
}
