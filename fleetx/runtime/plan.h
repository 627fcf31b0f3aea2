// A Plan is a program made ready for one set of feed shapes and one scope: kernels prepared, memory
// assigned, pointers set. Running it makes no decision and allocates nothing. Made by the planner,
// owned by the executor.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fleetx/ir/program.h"
#include "fleetx/kernel/kernel.h"
#include "fleetx/passes/pass.h"
#include "fleetx/runtime/memory.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::runtime {

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
};

inline constexpr int kNoStorage = -1;  // of a bucket that could not be

// Memory from the group's communicator; stays for the life of the plan.
struct BucketMemory {
  comm::Communicator* group = nullptr;
  size_t bytes = 0;
  std::shared_ptr<void> memory;
};

struct Step {
  std::string label;        // op type, or "reorder"
  std::string description;  // for messages: describe(op)
  std::unique_ptr<kernel::Kernel> kernel;
  std::vector<int> inputs, outputs;  // values
  std::vector<int> scratch;          // storages, or kNoStorage
  ir::Cost cost;
  ir::Role role = ir::Role::kForward;
  std::vector<void*> pointers;  // inputs, outputs, scratch
};

struct PhaseTime {
  std::string name;
  double seconds = 0;
};

class Plan {
 public:
  struct Fetch {
    std::string name;
    int value = -1;
  };

  // ---- running ----
  int feed_index(std::string_view name) const;  // -1 where the plan does not read it
  // Row-major memory that stays valid until the next run has ended. Types were checked when the
  // plan was made.
  void set_feed(int index, const void* data);
  // Runs all steps, then copies what is fetched into fetched(i).
  void run();
  // The same, with a look at every step: time for profile and trace, values for NaN and Inf.
  struct Observer {
    virtual ~Observer() = default;
    virtual void after(const Plan& plan, const Step& step, size_t index, uint64_t start_ns,
                       uint64_t end_ns) = 0;
  };
  void run(Observer& observer);
  // Valid after run; reused by the next run unless someone still holds it.
  const Tensor& fetched(size_t i) const { return fetched_[i]; }

  // ---- looking ----
  const ir::Program& program() const { return program_; }  // after all passes
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Storage>& storages() const { return storages_; }
  const void* address(int value) const;
  size_t arena_bytes() const { return arena_bytes_; }
  size_t live_bytes() const { return live_bytes_; }  // lower bound for the arena
  const std::vector<BucketMemory>& buckets() const { return buckets_; }
  size_t bucket_bytes() const;
  size_t scope_bytes() const { return scope_bytes_; }
  size_t fetch_bytes() const;
  // All memory that running this plan needs, the user's feeds not counted.
  size_t peak_bytes() const { return arena_bytes_ + bucket_bytes() + scope_bytes_ + fetch_bytes(); }
  double flops() const;
  int reorders() const;
  const std::vector<passes::Report>& passes() const { return passes_; }
  const std::vector<PhaseTime>& phases() const { return phases_; }
  double seconds_to_make() const;
  // op, implementation, layout, flops, bytes, arena offset of the first output; then totals.
  std::string table() const;

 private:
  friend class Planner;

  void copy_fetches();

  ir::Program program_;
  // Kernels may have calls under way in the groups, on the memory here: they are destroyed first.
  std::shared_ptr<const comm::Groups> groups_;
  std::vector<BucketMemory> buckets_;
  Buffer arena_;
  // Tensors of the scope: they stay alive as long as the plan points at them.
  std::map<std::string, Tensor> held_;
  std::vector<Value> values_;
  std::vector<Storage> storages_;
  std::vector<Step> steps_;
  std::vector<std::string> feeds_;
  std::vector<std::vector<std::pair<int, int>>>
      feed_uses_;  // per feed: (step, position in pointers)
  std::vector<const void*> feed_data_;
  std::vector<Fetch> fetches_;
  std::vector<Tensor> fetched_;
  std::vector<passes::Report> passes_;
  std::vector<PhaseTime> phases_;
  size_t arena_bytes_ = 0, live_bytes_ = 0, scope_bytes_ = 0;
};

}  // namespace fleetx::runtime
