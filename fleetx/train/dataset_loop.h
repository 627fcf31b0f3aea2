// Runs a program once per batch of a data set, until the data set ends. The next batches are read
// in the background while this one computes.
//
//   DatasetLoop loop{.inputs = {{"ids", {1}, "ids@LENGTHS"}, {"label", {1}}}, .fetch = {"loss"}};
//   loop.run(executor, program, scope, *batches);
//
// It can be interrupted (base/interrupt.h) between ops and while it waits for a batch.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "fleetx/data/batches.h"
#include "fleetx/runtime/executor.h"

namespace fleetx::train {

// How a slot is fed.
struct DatasetInput {
  std::string name;       // empty: it is not
  Shape sample{};         // of the values of a sample, or of one element of its sequence
  std::string lengths{};  // the input with the lengths of the sequences; empty: none
};

struct DatasetLoop {
  std::vector<DatasetInput> inputs{};  // one per slot
  ir::Names fetch{};
  int64_t print_period = 100;  // batches; the first is always shown
  std::function<void(int64_t batch, const std::vector<Tensor>& values)> show{};
  // Called after a batch where the time has come; gives the next time. Its users look at variables.
  std::function<std::chrono::steady_clock::time_point()> handler{};
  std::chrono::steady_clock::time_point handler_due{};

  // The number of batches.
  int64_t run(runtime::Executor& executor, const ir::Program& program, runtime::Scope& scope,
              data::Batches& batches) const;
};

// What the executor is fed with, without copies of the values.
runtime::Feeds feeds_of(data::Samples batch, const std::vector<data::Slot>& slots,
                        const std::vector<DatasetInput>& inputs);

}  // namespace fleetx::train
