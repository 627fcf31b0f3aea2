#include "fleetx/runtime/shared_state.h"

#include <cstring>
#include <mutex>
#include <set>

namespace fleetx::runtime {
namespace {

// Where tensors have been moved to: several executors share a scope, and one move is enough. Never
// destroyed, because tensors may be released by whatever lives longest.
struct Moved {
  std::mutex mutex;
  std::set<const void*> places;
};
Moved& moved() {
  static Moved* all = new Moved;
  return *all;
}

}  // namespace

std::map<std::string, std::string> sent_state(const PlannedProgram& plan) {
  std::map<std::string, std::string> out;
  for (const Step& step : plan.steps) {
    if (step.cost.communication.kind != ir::CommKind::kBroadcast) continue;
    if (!step.label.ends_with("_start")) continue;  // once, at startup
    for (const int v : step.inputs)
      if (plan.storage_of(v).region == Region::kScope)
        out.emplace(plan.value(v).var, step.cost.communication.group);
  }
  return out;
}

Tensor in_shared_memory(const Tensor& tensor, comm::Communicator& group) {
  if (group.size() == 1 || !tensor.layout().is_plain() || tensor.bytes() == 0) return tensor;
  Moved& all = moved();
  {
    const std::scoped_lock lock(all.mutex);
    if (all.places.contains(tensor.raw())) return tensor;
  }
  const std::shared_ptr<void> memory = group.allocate(tensor.bytes());
  std::memcpy(memory.get(), tensor.raw(), tensor.bytes());
  {
    const std::scoped_lock lock(all.mutex);
    all.places.insert(memory.get());
  }
  const std::shared_ptr<void> owner(memory.get(), [memory](void* place) {
    const std::scoped_lock lock(moved().mutex);
    moved().places.erase(place);
  });
  return Tensor::view(tensor.dtype(), tensor.shape(), memory.get(), owner);
}

}  // namespace fleetx::runtime
