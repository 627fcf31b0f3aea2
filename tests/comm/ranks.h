// Runs a function on every rank of a group, for each backend: threads (local), processes (shm,
// tcp, hierarchical), or a program started by mpirun (mpi).
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fleetx/comm/communicator.h"

namespace fleetx::testing {

using RankFn = std::function<void(comm::Communicator&)>;

// What each rank runs must be known by name, since mpirun starts it in a program of its own.
std::map<std::string, RankFn>& rank_functions();
struct RegisterRankFn {
  RegisterRankFn(const std::string& name, RankFn fn) { rank_functions()[name] = std::move(fn); }
};

inline constexpr int kRanks = 4;

struct RunOptions {
  comm::Milliseconds timeout{20'000};  // of the communicators
  comm::Milliseconds most{120'000};    // of everything; then all are killed and it is a failure
  bool some_die = false;               // ranks that are killed are no failure
  std::vector<int> hosts{};            // of each rank; empty: as the backend says, 4 ranks
};

// True where all ranks ended well; otherwise the failures are in the log of this test. `backend`
// with a * behind it: ranks 0 2 | 1 3 are on two hosts instead of 0 1 | 2 3.
bool run_ranks(const std::string& backend, const std::string& name, const RunOptions& options = {});
bool have_mpi();

}  // namespace fleetx::testing
