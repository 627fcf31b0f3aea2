// Memory that the plans of one executor share: only one of them runs at a time. One arena, as large
// as the largest of them needs, and buckets that have the same members in the same places.
// Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/comm/groups.h"
#include "fleetx/runtime/planned_program.h"
#include "fleetx/tensor/buffer.h"

namespace fleetx::runtime {

class PlanMemory {
 public:
  PlanMemory() = default;
  PlanMemory(const PlanMemory&) = delete;
  PlanMemory& operator=(const PlanMemory&) = delete;
  ~PlanMemory() { settle(); }

  // Grows the arena where it is too small. It moves then: plans look at its address before they
  // run.
  void reserve(size_t bytes);
  char* arena() const { return static_cast<char*>(arena_.data()); }
  size_t arena_bytes() const { return arena_.bytes(); }

  // `taken`: what the plan has already; its own buckets are in use at the same time.
  std::shared_ptr<void> bucket(comm::Communicator& group, const PlannedBucket& bucket,
                               const std::vector<std::shared_ptr<void>>& taken);

  // A run that failed may have left calls of these groups under way, on memory here.
  void abandon(std::shared_ptr<const comm::Groups> groups, const std::vector<std::string>& names);
  // Waits for such calls to end. Before the next run, and before memory is given back.
  void settle() {
    if (!abandoned_.empty()) [[unlikely]]
      wait_for_abandoned();
  }

 private:
  struct SharedBucket {
    const comm::Communicator* group;
    PlannedBucket form;
    std::weak_ptr<void> memory;  // of plans that are there
  };
  void wait_for_abandoned();

  Buffer arena_;
  std::vector<SharedBucket> buckets_;
  std::vector<std::pair<std::shared_ptr<const comm::Groups>, std::string>> abandoned_;
};

}  // namespace fleetx::runtime
