// How long a step of a planned program will take on given machines, and what it needs of them.
//
//   const Machine machine = Machine::load("machine.yaml");
//   const Prediction p = predict(plan, {.machine = machine, .ranks_per_host = 8});
//
// `plan` is that of any rank: the others are taken to do the same at the same time. Pure: nothing
// is measured or run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fleetx/predict/machine.h"
#include "fleetx/predict/simulate.h"
#include "fleetx/runtime/planned_program.h"

namespace fleetx::predict {

struct Setting {
  const Machine& machine;
  // How many ranks of the job share a host; 0: as many as the machine's description says, or else
  // one for each core, but not more than there are.
  int ranks_per_host = 0;
  // In which part of all steps the guarded ones run: gradient_merge with k_steps=4 updates in every
  // fourth.
  double guarded_share = 1;
  // What a process of the job takes before it has a plan: program, libraries. Measured by whoever
  // asks, in a process of that kind; 0: not counted. Kernels are added.
  size_t process_bytes = 0;
};
int ranks_per_host(const Setting& setting, const Mesh& mesh);

struct LinkUse {
  double host_bytes = 0;     // that a rank sends to others of its host in a step
  double network_bytes = 0;  // that its host sends to others
};

struct Prediction {
  double seconds = 0;  // of a step, in the mean
  RankTime time;       // its parts
  LinkUse links;
  double flops = 0;
  runtime::MemoryByKind memory;
  size_t process_bytes = 0;  // beside it
  size_t peak_bytes() const { return memory.total() + process_bytes; }
  Timeline timeline;  // of a step in which everything runs
};

Prediction predict(const runtime::PlannedProgram& plan, const Setting& setting);

// Of ranks that do different things and send each other messages: one plan for each stage of a
// pipeline, in their order. All have the same time line, of all stages.
std::vector<Prediction> predict_stages(const std::vector<const runtime::PlannedProgram*>& stages,
                                       const Setting& setting);

}  // namespace fleetx::predict
