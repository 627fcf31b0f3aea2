// Which stage of a pipeline computes which op, in two steps: forward ops before there is a
// backward part, the rest after it. Ops that are cheap to have everywhere (casts of parameters,
// constants, and masks made of the data where no guard says otherwise) belong to no stage: each
// stage that reads their results computes them, so that nothing travels.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fleetx/ir/rewriter.h"

namespace fleetx::strategies {

inline constexpr int kAnyStage = -1;  // of an op that each stage computes for itself

struct StageOptions {
  int stages = 1;
  int64_t micro_batch = 1;  // samples, where they are known
};

// Gives every forward op its stage, or none: that which a device_guard has named, else the highest
// of what it reads; without any guard, cut_into_stages chooses. kInvalidArgument: stages that are
// not those of the job, a value or state that goes back to an earlier stage, a stage without
// parameters.
void stage_forward(ir::Program& main, const StageOptions& options);

// The gradient of a parameter that several stages use: the part of each stage.
struct SharedGradient {
  std::string parameter, gradient;
  std::map<int, std::string> parts;
};

// Gives every backward op its stage. A sum of gradients from several stages is taken apart: each
// stage adds up its own parts first. Those of parameters that are made in several stages are
// returned, and their sums are gone: each stage adds up its micro-batches before anything travels.
std::vector<SharedGradient> stage_backward(ir::Program& main);

// Which stages compute and read each variable, in a program whose ops have stages.
class StageMap {
 public:
  StageMap(const ir::Program& main, int stages, const std::vector<SharedGradient>& shared);

  const std::set<int>& of(const ir::Op& op) const { return stages_.at(&op); }
  bool has(const ir::Op& op, int stage) const { return of(op).contains(stage); }
  int home(const std::string& var) const;  // kAnyStage: everywhere
  // Whether each micro-batch has a value of its own: what follows from data or random numbers.
  bool varies(const std::string& var) const { return varies_.contains(var); }
  bool is_once(const ir::Op& op) const;  // for all micro-batches together
  // Data that are cut into micro-batches: those whose first dimension is that of the batch.
  bool is_cut(const ir::VarInfo& data) const;
  // Samples of a batch, where the program is built for so many; -1: for any number.
  int64_t batch() const;
  // The first stage that reads a parameter or other state; kAnyStage where none does.
  int owner(const std::string& state) const;
  std::set<int> readers(const std::string& var) const;

 private:
  void find_varying();
  void find_stages();

  const ir::Program& p_;
  int count_;
  std::set<std::string> needed_;  // gradients, although no op reads them
  std::map<const ir::Op*, std::set<int>> stages_;
  std::map<std::string, std::set<int>> readers_;
  std::map<std::string, int> homes_;
  std::set<std::string> varies_;
};

// One more than the highest stage that a device_guard names; 0 where none does.
int guarded_stages(const ir::Program& main);

}  // namespace fleetx::strategies
