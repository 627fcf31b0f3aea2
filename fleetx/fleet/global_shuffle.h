// Deals the samples that all workers have in memory out among them, at random.
#pragma once

#include "fleetx/comm/communicator.h"
#include "fleetx/data/sample_store.h"

namespace fleetx::fleet {

// All workers call it with the same seed and round. Every sample goes to a random worker, and all
// workers get the same number, within one; then each shuffles what it has. The result is a function
// of the samples, seed and round. Workers whose slots differ: kInvalidArgument on all of them.
data::SampleStore global_shuffle(const data::SampleStore& own, comm::Communicator& workers,
                                 uint64_t seed, int64_t round);

}  // namespace fleetx::fleet
