// Backend shm: the ranks are processes of one host. Their shared memory has no name in the file
// system: a rank creates it (memfd) and its peers open it through /proc, so nothing is left behind
// after a crash. Memory from allocate() is mapped by all of them: collectives on it are zero-copy.
#pragma once

#include "fleetx/comm/shared.h"

namespace fleetx::comm {

// Memory of this process that ranks of the same host can map.
struct ShmFiles {
  Fd arena, control;
};
ShmFiles create_shared_files();

// What peers need to open it.
struct ShmPeer {
  Member member;
  int arena_fd = -1, control_fd = -1;  // in that process
};

// `peers` are the ranks of this host; all of them call it.
std::unique_ptr<Shared> make_shm(int rank, const std::vector<ShmPeer>& peers, const ShmFiles& own,
                                 std::shared_ptr<StoreClient> store, Milliseconds timeout);

// Ranks with the same id can share memory.
std::string this_host_id();

}  // namespace fleetx::comm
