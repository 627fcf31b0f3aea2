// The training loop: steps over a loader, progress, evaluation after every epoch, checkpoints, and
// resuming so that the losses are the same bits as without the pause.
//
//   Trainer trainer(builder, loss, accuracy,
//                   {.epochs = 5, .checkpoint_dir = "run", .resume = true});
//   trainer.fit(train_loader, &test_loader);
//   trainer.history().plot("curves.png");
//
// It knows nothing of strategies or optimizers: those are in the program. In a job of several
// workers (fleet::init was called) all of them make the same calls with loaders of their share of
// the data; worker 0 speaks (its own training loss, the test figures of all) and writes the
// checkpoints.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "fleetx/comm/communicator.h"
#include "fleetx/data/loader.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "fleetx/train/checkpoint.h"
#include "fleetx/train/event_file.h"
#include "fleetx/train/history.h"
#include "fleetx/train/progress.h"

namespace fleetx::train {

struct TrainerOptions {
  int64_t epochs = 1;
  int64_t max_steps = 0;  // stop after so many updates in all; 0: no limit
  int64_t log_every = 100;
  std::string checkpoint_dir = {};  // empty: no checkpoints
  int64_t checkpoint_every = 0;     // steps; 0: after every epoch
  int keep = 3;                     // checkpoints
  // Go on from the newest checkpoint, if there is one. Without it a folder that has some already is
  // an error: two runs must not be mixed.
  bool resume = false;
  std::string event_dir = {};         // of files for TensorBoard; empty: none
  std::optional<uint64_t> seed = {};  // of initial values and random ops; none: as in the programs
  std::FILE* out = stdout;            // null: quiet
  std::string items = "images";
  std::function<void(int64_t step, double loss)> on_step = {};
};

struct Metrics {
  double loss = 0;
  double accuracy = 0;  // of 1; NaN where the network has none
  int64_t samples = 0;
};

class Trainer {
 public:
  // Takes copies of the programs as they are now (the optimizer must have been added), makes the
  // one for testing, and runs startup or loads the checkpoint. `accuracy` may be undefined.
  Trainer(ir::Builder& builder, const ir::Var& loss, const ir::Var& accuracy,
          TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains until the epochs (or max_steps) are done. May be called again with more epochs left.
  void fit(data::Loader& train, data::Loader* test = nullptr);
  Metrics evaluate(data::Loader& test);
  // Writes a checkpoint at the current place; needs checkpoint_dir. Returns its path.
  std::string save();

  int64_t step() const { return step_; }
  const data::Position& position() const { return position_; }
  const History& history() const { return history_; }
  runtime::Scope& scope() { return scope_; }
  runtime::Executor& executor() { return executor_; }
  const ir::Program& program() const { return main_; }

 private:
  struct Clock;
  struct Means {
    Mean loss, accuracy;
    void add(const Metrics& m) {
      loss.add(m.loss, static_cast<double>(m.samples));
      accuracy.add(m.accuracy, static_cast<double>(m.samples));
    }
  };
  void restore();
  bool speaks() const { return workers_ == nullptr || workers_->rank() == 0; }
  // Sums over all workers, where the loader gives each a part.
  Metrics gather(const Means& means, const data::Loader& loader) const;
  bool finished() const;
  Metrics run_step(data::Loader& train);
  void train_epoch(data::Loader& train, Clock& clock);
  void finish_epoch(std::string line, data::Loader* test);
  void close_window();
  void record(const std::string& split, double loss, double accuracy);
  Status status(const data::Loader& train, const Clock& clock, const Means& means) const;

  TrainerOptions options_;
  comm::Communicator* workers_;  // null: alone
  ir::Program main_, startup_, test_;
  ir::Names fetch_;
  runtime::Scope scope_;
  runtime::Executor executor_;
  Progress progress_;
  History history_;
  std::optional<EventFile> events_;
  int64_t step_ = 0;
  data::Position position_;
  int64_t epoch_ = 0;  // of the last step, counted from 1
  double seconds_ = 0;
  Means window_, epoch_means_;  // since the last record, since the epoch began
};

}  // namespace fleetx::train
