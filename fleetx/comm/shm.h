// Backend shm: the ranks are processes of one host. Their common memory has no name in the file
// system: a rank creates it (memfd) and the others open it through /proc, so nothing can be left
// behind. Memory from allocate() is seen by all of them, and collectives work on it in place.
#pragma once

#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

// Memory of this process that ranks of the same host can map.
struct ShmOffer {
  Fd arena, control;
};
ShmOffer offer_shared_memory();

// What the others need to find it.
struct ShmPeer {
  Member member;
  int arena_fd = -1, control_fd = -1;  // in that process
};

// `peers` are the ranks of this host; all of them call it.
std::unique_ptr<Communicator> make_shm(int rank, const std::vector<ShmPeer>& peers,
                                       const ShmOffer& own, std::shared_ptr<StoreClient> store,
                                       Milliseconds timeout);

// Ranks with the same one can share memory.
std::string this_host_id();

}  // namespace fleetx::comm
