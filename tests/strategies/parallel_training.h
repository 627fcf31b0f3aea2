// The same training by one worker and by several, which are threads of the test and share every
// batch.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"
#include "fleetx/strategies/strategy.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {

inline void minimize_for_worker(const ir::Var& loss, optim::Optimizer& optimizer,
                                const std::vector<strategies::Request>& requests, int rank,
                                int workers) {
  ir::Builder& b = loss.builder();
  strategies::ResolvedStrategies resolved(requests, {.mesh = Mesh({{"dp", workers}}, rank)});
  strategies::minimize(
      {b.main(), b.startup()}, resolved, [&] { (void)optimizer.backward(loss); },
      [&] { optimizer.apply_gradients(autograd::trained(b)); });
}

struct Training {
  std::vector<float> losses;            // mean of all workers
  std::map<std::string, Tensor> state;  // at the end, of worker 0; checked to be that of all
};

struct TrainOptions {
  int workers = 1;
  std::vector<strategies::Request> strategies = {};
  int steps = 20;
  int64_t batch = 24;  // of all workers together
  Shape sample = {12};
  int64_t classes = 5;
  // Variables that each worker has for itself, by a part of their names.
  std::string own = "@none@";
  int batches_per_step = 1;  // so many of the batches that other trainings have, at once
  // Where it is given: what is done to a worker's share of a batch before it is used.
  std::function<void(int step, int rank, runtime::Feeds&)> change = nullptr;
};

inline Tensor rows_of(const Tensor& all, int64_t first, int64_t count) {
  Shape shape = all.shape();
  shape[0] = count;
  Tensor part(all.dtype(), shape);
  const size_t row = all.bytes() / static_cast<size_t>(all.shape()[0]);
  std::memcpy(part.raw(), static_cast<const char*>(all.raw()) + static_cast<size_t>(first) * row,
              part.bytes());
  return part;
}

// Rows of the one, then those of the other.
inline Tensor joined(const Tensor& a, const Tensor& b) {
  Shape shape = a.shape();
  shape[0] += b.shape()[0];
  Tensor both(a.dtype(), shape);
  std::memcpy(both.raw(), a.raw(), a.bytes());
  std::memcpy(static_cast<char*>(both.raw()) + a.bytes(), b.raw(), b.bytes());
  return both;
}

// A worker's share of a batch: random samples, moved a little by their class.
inline runtime::Feeds one_batch(int number, const TrainOptions& o, int rank) {
  Shape shape{o.batch};
  for (const int64_t d : o.sample) shape.push_back(d);
  Tensor x = random(shape, static_cast<uint64_t>(1000 + number));
  const Tensor y = random_ints({o.batch, 1}, 0, o.classes, static_cast<uint64_t>(number));
  const int64_t width = x.shape().numel() / o.batch;
  for (int64_t i = 0; i < x.shape().numel(); ++i)
    x.data<float>()[i] += 0.4f * static_cast<float>(y.data<int64_t>()[i / width]);
  const int64_t share = o.batch / o.workers;
  return {{"x", rows_of(x, rank * share, share)}, {"y", rows_of(y, rank * share, share)}};
}

// A worker's share of what a step is fed.
inline runtime::Feeds batch_of(int step, const TrainOptions& o, int rank) {
  runtime::Feeds feeds = one_batch(step * o.batches_per_step, o, rank);
  for (int i = 1; i < o.batches_per_step; ++i) {
    const runtime::Feeds more = one_batch(step * o.batches_per_step + i, o, rank);
    for (size_t f = 0; f < feeds.size(); ++f)
      feeds[f].second = joined(feeds[f].second, more[f].second);
  }
  if (o.change) o.change(step, rank, feeds);
  return feeds;
}

// Learns to tell the classes apart.
inline Training train(const std::function<ir::Var(ir::Builder&)>& network,
                      optim::Optimizer& optimizer, const TrainOptions& o) {
  std::vector<Training> all(static_cast<size_t>(o.workers));
  std::mutex building;  // the optimizer is shared
  run_workers(o.workers, [&](int rank, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    std::string loss;
    {
      const std::scoped_lock lock(building);
      const ir::Var l = network(b);
      loss = l.name();
      // Different first values, so that they agree only if worker 0's are shared.
      startup.set_seed(static_cast<uint64_t>(rank + 1));
      minimize_for_worker(l, optimizer, o.strategies, rank, o.workers);
    }
    runtime::Scope scope;
    runtime::Executor exe({.plan = {.groups = groups}});
    exe.run(startup, scope);
    Training& mine = all[static_cast<size_t>(rank)];
    for (int step = 0; step < o.steps; ++step) {
      const auto out = exe.run(main, scope, batch_of(step, o, rank), {loss});
      mine.losses.push_back(out[0].item<float>());
    }
    for (const std::string& name : scope.names()) mine.state.emplace(name, scope.get(name));
  });
  for (Training& t : all) t.state.erase("@worker_weight@");  // one worker alone has none
  Training result = all[0];
  for (size_t rank = 1; rank < all.size(); ++rank) {
    for (const auto& [name, value] : all[rank].state)
      if (name.find(o.own) == std::string::npos)
        expect_close(value, all[0].state.at(name), 0, str(name, " of worker ", rank));
    for (size_t i = 0; i < result.losses.size(); ++i) result.losses[i] += all[rank].losses[i];
  }
  for (float& loss : result.losses) loss /= static_cast<float>(o.workers);
  return result;
}

inline void expect_equal(const Training& got, const Training& want, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < got.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i],
                tolerance * std::abs(static_cast<double>(want.losses[i])))
        << what << ", loss of step " << i;
  ASSERT_EQ(got.state.size(), want.state.size());
  for (const auto& [name, value] : got.state)
    expect_close(value, want.state.at(name), tolerance, what + ", " + name);
}

}  // namespace fleetx::testing
