// Memory of this process, as the kernel counts it. Bytes.
#pragma once

#include <cstddef>

namespace fleetx {

// In memory now: the program, its libraries, all that has been touched.
size_t resident_bytes();

// The most until now. Memory that processes share (buckets of workers of one host) counts in equal
// parts for those that have touched it, as they have at the time of the call: the figures of all
// workers together are what the machine gives them.
size_t peak_resident_bytes();

// What this process may use: the limit of its control group, see cgroup::memory_limit, or else of
// the machine, swap included. `siblings`: of one launcher on this machine.
struct MemoryLimit {
  double bytes = 0;
  bool by_cgroup = false;
};
MemoryLimit memory_limit(int siblings = 1);

}  // namespace fleetx
