// Checkpoints: everything that a run needs to go on as if it had not stopped. A checkpoint is a
// sealed folder (see sealed_folder.h):
//
//   parameters.safetensors   what is trained
//   state.safetensors        optimizer state, statistics, step counter
//   main.pb, main.txt, ...   programs, for machines and for people
//   <name>                   texts of the caller
//   manifest.json            step, position in the data, seed; sizes and checksums of the files
//
// Tensors are stored row-major, by name and whole (see placed_state.h), so a checkpoint depends
// neither on the layouts that a CPU likes nor on how many workers wrote it. Random numbers are
// counter-based: the seed and the step counter are all their state.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/comm/groups.h"
#include "fleetx/data/loader.h"
#include "fleetx/ir/program.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::train {

struct State {
  int64_t step = 0;         // updates done
  data::Position position;  // of the next batch
  uint64_t seed = 0;
  std::map<std::string, std::string> texts;  // small files of the caller: history.csv
};

using Programs = std::vector<std::pair<std::string, const ir::Program*>>;  // {"main", &main}

struct SaveOptions {
  int keep = 3;                                          // checkpoints in the folder
  bool writes = true;                                    // in a job: worker 0 only
  std::shared_ptr<const comm::Groups> groups = nullptr;  // null: those of this process
};
// Writes `dir`/step-<n> and then removes all but the last `keep`. Returns its path. Where a
// variable is sharded or per rank, all ranks of its axis call it: they send their parts to the
// first.
std::string save_checkpoint(const std::string& dir, const runtime::Scope& scope,
                            const Programs& programs, const State& state,
                            const SaveOptions& options = {});

// The path of the newest checkpoint in `dir`; empty where there is none.
std::string latest_checkpoint(const std::string& dir);
// Removes all checkpoints in `dir`, and nothing else.
void remove_checkpoints(const std::string& dir);

// Verifies one checkpoint and puts its tensors into the scope. With programs given, everything they
// keep from step to step must be there with the same type, but for transient variables, which are
// never saved, and those with a stand-in (ir/stand_in.h): run startup first. Only that is loaded,
// each rank its own part.
State load_checkpoint(const std::string& path, runtime::Scope& scope, const Programs& programs = {},
                      std::shared_ptr<const comm::Groups> groups = nullptr);
ir::Program load_program(const std::string& path, const std::string& name);

// A trained network for use: the part of a program that computes `targets`, as for testing, and the
// variables it needs.
struct Model {
  ir::Program program;
  ir::Names feeds, targets;
};
void save_model(const std::string& dir, const ir::Program& program, const ir::Names& targets,
                const runtime::Scope& scope);
Model load_model(const std::string& dir, runtime::Scope& scope);

// Only the parameters, by name, as one safetensors file.
void save_parameters(const std::string& path, const ir::Program& program,
                     const runtime::Scope& scope);
void load_parameters(const std::string& path, const ir::Program& program, runtime::Scope& scope);

}  // namespace fleetx::train
