// Cores, and how the processes of a machine share them.
#pragma once

#include <string>
#include <vector>

namespace fleetx::launch {

struct Core {
  int number = 0;         // its first hardware thread, as the system counts
  std::vector<int> cpus;  // hardware threads
  bool operator==(const Core&) const = default;
};

// The cores this process may run on (its affinity mask), neighbours first. Asks hwloc.
std::vector<Core> usable_cores();

struct Share {
  std::vector<Core> cores;  // empty: not pinned, since there are fewer cores than shares
  int threads = 1;
};
// Equal, contiguous shares; cores that do not divide evenly go to the first ones.
std::vector<Share> share_cores(const std::vector<Core>& cores, int shares);

std::string describe(const Share& share);  // "cores 0-3,8", "core 2", "all cores"

}  // namespace fleetx::launch
