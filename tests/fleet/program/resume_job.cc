// A worker for tests/fleet/resume_test.cc: trains on its share of every batch with the Trainer,
// from the newest checkpoint in a folder, and prints the mean loss of all workers after every step.
//   resume_job NETWORK FOLDER STEPS       NETWORK: dropout, sync_batch_norm
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "fleetx/base/rng.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/train/trainer.h"

using namespace fleetx;

namespace {

constexpr int64_t kSamples = 96, kWidth = 12, kBatch = 24;  // 4 steps an epoch

std::shared_ptr<data::Dataset> samples() {
  Tensor x(f32, {kSamples, kWidth}), y(f32, {kSamples, 1});
  const Philox random(7, 0);
  for (int64_t i = 0; i < kSamples * kWidth; ++i)
    x.data<float>()[static_cast<size_t>(i)] = random.normal(static_cast<uint64_t>(i));
  for (int64_t i = 0; i < kSamples; ++i)
    y.data<float>()[static_cast<size_t>(i)] = random.normal(static_cast<uint64_t>(10000 + i));
  return std::make_shared<data::TensorDataset>(std::map<std::string, Tensor>{{"x", x}, {"y", y}});
}

ir::Var network(ir::Builder& b, const std::string& kind) {
  ir::Var h = nn::fc(b.data("x", f32, {-1, kWidth}), {.size = 40, .act = "tanh"});
  h = kind == "dropout" ? nn::dropout(h, {.p = 0.2}) : nn::batch_norm(h);
  const ir::Var error = nn::sub(nn::fc(h, {.size = 1}), b.data("y", f32, {-1, 1}));
  return nn::mean(nn::square(error));
}

void run(const std::string& kind, const std::string& folder, int64_t steps) {
  fleet::init({.is_collective = true});
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var loss = network(b, kind);
  fleet::DistributedStrategy strategy;
  strategy.sync_batch_norm = kind == "sync_batch_norm";
  fleet::distributed_optimizer(optim::Momentum({.lr = 0.02}), strategy).minimize(loss);

  const int workers = fleet::worker_num();
  data::Loader loader(samples(), {.batch = kBatch / workers,
                                  .shuffle = true,
                                  .seed = 3,
                                  .rank = fleet::worker_index(),
                                  .world = workers});
  const auto report = [&](int64_t step, double own) {
    const double mean = fleet::util().all_reduce(std::vector<double>{own})[0] / workers;
    if (fleet::is_first_worker())
      std::printf("step %lld loss %.9g\n", static_cast<long long>(step), mean);
  };
  train::Trainer trainer(b, loss, {},
                         {.epochs = 100,
                          .max_steps = steps,
                          .checkpoint_dir = folder,
                          .resume = true,
                          .out = nullptr,
                          .on_step = report});
  trainer.fit(loader);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) return 2;
    run(argv[1], argv[2], std::atoll(argv[3]));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "resume_job: %s\n", e.what());
    return 1;
  }
}
