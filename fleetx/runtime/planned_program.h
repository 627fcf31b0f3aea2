// A PlannedProgram is all that can be said about running a program with given feed shapes on one
// rank, before any memory is there: kernels, layouts, lifetimes, offsets, bytes, arithmetic. A
// value, made by plan_program (planner.h) in the phases of phases.h; bind (bind.h) makes a Plan of
// it, which can run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/ir/program.h"
#include "fleetx/kernel/kernel.h"
#include "fleetx/passes/pass.h"
#include "fleetx/runtime/memory.h"

namespace fleetx::runtime {

using FeedTypes = std::vector<std::pair<std::string, ir::TensorType>>;

enum class Region : uint8_t {
  kArena,   // activations and scratch, reused within the step
  kBucket,  // gradients that workers reduce together, next to each other in memory of their group
  kScope,   // parameters and state
  kFeed,    // the user's memory
};
std::string_view name_of(Region region);

// One variable in one layout. Several values may share a storage (in-place ops, views).
struct Value {
  std::string var;
  kernel::Desc desc;
  int storage = -1;
};

struct Storage {
  Region region = Region::kArena;
  Block block;
  std::string var;  // kScope and kFeed: whose memory
  int bucket = -1;  // kBucket: which one; block.offset is the place in it
  // kScope: who needs what the variable holds before the step ("" where the step makes it). Begins
  // the error where the scope does not have it.
  std::string needed_by;
};

inline constexpr int kNoStorage = -1;  // of a bucket that could not be
inline constexpr int kNoGuard = -1;    // of a step that always runs
inline constexpr int kNoTicket = -1;   // of a step that waits for no call

// Room for variables that a group reduces together.
struct PlannedBucket {
  std::string group;
  size_t bytes = 0;
  std::vector<size_t> members;  // bytes of each

  bool operator==(const PlannedBucket&) const = default;
};

struct Step {
  std::string label;        // op type, or "reorder"
  std::string description;  // for messages: describe(op)
  std::unique_ptr<kernel::Kernel> kernel;
  std::vector<int> inputs, outputs;  // values
  std::vector<int> scratch;          // storages, or kNoStorage
  int guard = kNoGuard;  // a value, bool[1] and row-major: where it is false, the step is skipped
  ir::Cost cost;
  double wire_bytes = 0;   // that this rank sends
  int ticket = kNoTicket;  // a value (kernel/ticket.h): of the call that the step waits for
  ir::Role role = ir::Role::kForward;
};

struct PhaseTime {
  std::string name;
  double seconds = 0;
};

struct Fetch {
  std::string name;
  int value = -1;
};

// What this rank sends to the others of a group in one step of training.
struct Traffic {
  int ranks = 1;
  int calls = 0;
  double bytes = 0;
};

// Where the memory goes at the moment at which most of the arena is in use.
struct MemoryByKind {
  size_t parameters = 0;
  size_t state = 0;        // of optimizers, statistics: the rest of the scope
  size_t buckets = 0;      // gradients that workers reduce together
  size_t activations = 0;  // what forward has computed
  size_t gradients = 0;    // what backward and updates have computed
  size_t scratch = 0;      // of kernels
  size_t unused = 0;       // gaps of the arena
  size_t fetched = 0;

  size_t total() const {
    return parameters + state + buckets + activations + gradients + scratch + unused + fetched;
  }
};

struct PlannedProgram {
  ir::Program program;  // after all passes
  Mesh mesh;
  FeedTypes feeds;
  std::vector<Fetch> fetches;
  std::vector<Value> values;
  std::vector<Storage> storages;
  std::vector<PlannedBucket> buckets;
  std::map<std::string, int> groups;  // that the program computes with, and their sizes
  std::vector<Step> steps;
  std::vector<passes::Report> passes;
  std::vector<PhaseTime> phases;
  size_t arena_bytes = 0;
  size_t live_bytes = 0;   // alive at once: a lower bound for the arena
  size_t scope_bytes = 0;  // of the parameters and state that the program uses

  Value& value(int i) { return values[static_cast<size_t>(i)]; }
  const Value& value(int i) const { return values[static_cast<size_t>(i)]; }
  Storage& storage(int i) { return storages[static_cast<size_t>(i)]; }
  const Storage& storage(int i) const { return storages[static_cast<size_t>(i)]; }
  Storage& storage_of(int value) { return storage(this->value(value).storage); }
  const Storage& storage_of(int value) const { return storage(this->value(value).storage); }

  std::vector<bool> storages_in_use() const;  // by steps and fetches; others need no memory
  size_t bucket_bytes() const;
  size_t fetch_bytes() const;
  // All memory that running this plan needs, the user's feeds not counted.
  size_t peak_bytes() const { return arena_bytes + bucket_bytes() + scope_bytes + fetch_bytes(); }
  MemoryByKind memory() const;  // its total is peak_bytes()
  double flops() const;
  std::map<std::string, Traffic> traffic() const;  // per group
  int reorders() const;
  double seconds_to_make() const;
  // About what this description and its kernels take; memory that a run needs is not in it.
  size_t own_bytes() const;
  // op, implementation, layout, flops, bytes, arena offset of the first output; then totals.
  std::string table() const;
};

}  // namespace fleetx::runtime
