// Members of a bucket are stored in it from the op that computes them on; they have no other
// memory. A variable that has its memory already (state, what is fed) cannot be a member; then the
// whole bucket is left out. A later op that asks for the same variables uses the same bucket.
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
  // The bucket of a call is made for the op that starts it, never for the one that waits.
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
  // The op names only some of the members, so the tail of the bucket does not follow them.
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
