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

// The cores of this process's affinity mask in hwloc's order, so that neighbours share caches.
std::vector<Core> usable_cores();

struct Share {
  std::vector<Core> cores;  // empty: not pinned, because there are fewer cores than shares
  int threads = 1;
};
// Equal, contiguous shares; cores that do not divide evenly go to the first ones. A CPU quota (of
// all together, in cores; 0: none) is shared, too: it limits threads, not where they may run.
std::vector<Share> share_cores(const std::vector<Core>& cores, int shares, double quota = 0);

std::string describe(const Share& share);  // "cores 0-3,8", "core 2", "all cores"

}  // namespace fleetx::launch
