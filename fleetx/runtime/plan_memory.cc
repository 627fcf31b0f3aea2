#include "fleetx/runtime/plan_memory.h"

#include <algorithm>

namespace fleetx::runtime {

void PlanMemory::reserve(size_t bytes) {
  if (arena_.data() != nullptr && bytes <= arena_.bytes()) return;
  settle();
  arena_ = {};  // both at once could be too much
  arena_ = Buffer::allocate(bytes);
}

// A bucket keeps zeros between its members, so only one of exactly the same form can be used again.
std::shared_ptr<void> PlanMemory::bucket(comm::Communicator& group, const PlannedBucket& bucket,
                                         const std::vector<std::shared_ptr<void>>& taken) {
  std::erase_if(buckets_, [](const SharedBucket& b) { return b.memory.expired(); });
  for (const SharedBucket& b : buckets_)
    if (std::shared_ptr<void> memory = b.memory.lock();
        b.group == &group && b.form == bucket &&
        std::find(taken.begin(), taken.end(), memory) == taken.end())
      return memory;
  std::shared_ptr<void> memory = group.allocate(bucket.bytes);
  buckets_.push_back({&group, bucket, memory});
  return memory;
}

void PlanMemory::abandon(std::shared_ptr<const comm::Groups> groups,
                         const std::vector<std::string>& names) {
  for (const std::string& name : names) abandoned_.emplace_back(groups, name);
}

void PlanMemory::wait_for_abandoned() {
  for (const auto& [groups, name] : abandoned_) groups->at(name).settle();
  abandoned_.clear();
}

}  // namespace fleetx::runtime
