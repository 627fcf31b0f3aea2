// Gradients are born in their bucket: their only memory, from the op that computes them on. What
// has its place already (state, what is fed) stays there, and then the others do so too. A later op
// that asks for the same variables finds them where the first has put them.
#include <algorithm>

#include "fleetx/runtime/phases.h"

namespace fleetx::runtime {
namespace {

void place(PlannedProgram& plan, const BucketRequest& request) {
  const kernel::Bucket& bucket = request.bucket;
  Step& step = plan.steps[static_cast<size_t>(request.step)];
  std::vector<Storage*> members;
  for (const int input : bucket.inputs)
    members.push_back(&plan.storage_of(step.inputs[static_cast<size_t>(input)]));
  const bool there = members.front()->region == Region::kBucket;
  // Who waits finds what its start has put into a bucket, and makes none.
  if (!there && step.ticket != kNoTicket) {
    step.scratch[bucket.place] = kNoStorage;
    return;
  }
  const int number = there ? members.front()->bucket : static_cast<int>(plan.buckets.size());
  size_t end = 0;
  for (Storage* m : members) {
    const bool fits =
        there ? m->region == Region::kBucket && m->bucket == number && m->block.offset == end
              : m->region == Region::kArena && std::count(members.begin(), members.end(), m) == 1;
    if (!fits) {
      step.scratch[bucket.place] = kNoStorage;
      return;
    }
    end += align_up(m->block.bytes);
  }
  // Only some of the variables of a bucket: its tail is not where they end.
  if (there && plan.buckets[static_cast<size_t>(number)].bytes != end + bucket.tail) {
    step.scratch[bucket.place] = kNoStorage;
    return;
  }
  Storage& begin = plan.storage(step.scratch[bucket.place]);
  begin.region = Region::kBucket;
  begin.bucket = number;
  if (there) return;
  PlannedBucket made{bucket.group, 0, {}};
  for (Storage* m : members) {
    m->region = Region::kBucket;
    m->bucket = number;
    m->block.offset = made.bytes;
    made.bytes += align_up(m->block.bytes);
    made.members.push_back(m->block.bytes);
  }
  made.bytes += bucket.tail;
  plan.buckets.push_back(std::move(made));
}

}  // namespace

void place_buckets(Planning& p) {
  for (const BucketRequest& request : p.buckets) place(p.plan, request);
}

}  // namespace fleetx::runtime
