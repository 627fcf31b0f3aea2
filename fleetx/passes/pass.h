// The local passes: rewrites of a whole program of one rank, just before it is planned. They change
// how something is computed, never what. Every pass is named, timed, verified after, dumped on
// request and can be skipped by its name, so that a wrong result can be traced to the pass that
// made it.
//
//   for (const Report& r : run_local_passes(program, {.keep = fetches})) ...
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/ir/program.h"

namespace fleetx::passes {

struct Report {
  std::string name;
  double seconds = 0;
  size_t ops_before = 0;
  size_t ops_after = 0;
  bool skipped = false;
};

struct Options {
  ir::Names keep = {};  // variables that must stay available: fetch targets
  // What is fed, with all dimensions known; empty: nothing is known beyond the declarations.
  std::vector<std::pair<std::string, ir::TensorType>> feeds = {};
  std::set<std::string> skip = {};  // names of passes to leave out
  std::string dump_dir = "";        // where to write NN.name.txt after each pass; "": nowhere
};

// Runs every local pass in order. An unknown name in `skip` or `keep` is kInvalidArgument, before
// anything is changed.
std::vector<Report> run_local_passes(ir::Program& program, const Options& options);

std::vector<std::string> local_pass_names();  // in the order in which they run

}  // namespace fleetx::passes
