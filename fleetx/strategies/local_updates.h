// What localsgd and adaptive_localsgd share: workers apply their own gradients, and take the
// average of all workers' parameters in some of the steps.
//
//   d = elementwise_sub(w@SNAPSHOT, w)              if sync
//   [d], t = all_reduce_start([d], @step@)          if sync      in buckets, as gradients travel
//   [d] = all_reduce_wait([d], t)                   if sync
//   w = elementwise_sub(w@SNAPSHOT, d)              if sync
//   w@SNAPSHOT = assign(w)                          if sync
//
// The snapshot is what all workers had after the last average; differences to it are small, so that
// their average rounds less than that of the parameters would. Parameters, and the optimizer's
// state, become per rank: a checkpoint between two averages has those of all workers. The
// optimizer's state is never averaged: workers whose velocities differ have the parameters that one
// with the mean velocity has, because the update is linear in it.
//
// A single number that the workers have come to disagree on because they no longer decide together
// (the loss scale of amp) becomes the smallest of all in each average. Parameters on which workers
// agree anyway are left alone.
#pragma once

#include <string>

#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

// Appends ops to the update part, in front of the one that counts the step.
class UpdateOps {
 public:
  // `prefix` begins the names of new variables.
  UpdateOps(Programs& programs, std::string prefix);

  ir::Rewriter& rw() { return rw_; }
  void op(const std::string& type, std::vector<std::pair<std::string, ir::Names>> inputs,
          std::vector<std::pair<std::string, ir::Names>> outputs, ir::Attrs attrs = {},
          const std::string& guard = "");
  // The same with one output, a new variable, whose name is returned.
  std::string make(const std::string& name, const std::string& type,
                   std::vector<std::pair<std::string, ir::Names>> inputs, ir::Attrs attrs = {},
                   const std::string& guard = "");
  std::string constant(const std::string& name, int64_t value);  // i64[1]
  // The number of this step, from 1; i64[1].
  std::string step_number();

 private:
  ir::Rewriter rw_;
  std::string prefix_, counter_;
};

// The traits of a strategy of this kind.
Traits traits_of_local_updates(std::string_view strategy);
void check_begin_step(std::string_view strategy, const ir::Attrs& options);

// `sync`: the steps with an average, the same on all workers; "": each step. `options`: on which
// parameters travel together (averaging.h).
void average_parameters(Programs& programs, UpdateOps& ops, const std::string& sync,
                        const ir::Attrs& options);

// What workers disagree on is per rank, and each such parameter has a snapshot.
void check_local_updates(const ir::Program& main);

}  // namespace fleetx::strategies
