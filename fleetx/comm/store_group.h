// A group of processes that have nothing in common but a store: servers, or servers and workers of
// a job. For small things now and then (all_reduce, all_gather, broadcast, barrier; what each gives
// goes through the store), not for training.
#pragma once

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

// Every member calls it, with the same name and size. Nobody waits before the first call.
std::unique_ptr<Communicator> make_store_group(std::shared_ptr<StoreClient> store,
                                               const std::string& name, int rank, int size);

}  // namespace fleetx::comm
