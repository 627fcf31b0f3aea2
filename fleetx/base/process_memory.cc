#include "fleetx/base/process_memory.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "fleetx/base/cgroup.h"

namespace fleetx {
namespace {

// Of /proc/self/smaps: what others have touched, too, is theirs to equal parts. Only memory without
// a name that is mapped as shared (memfd): pages of libraries are not ours to give away.
size_t of_others() {
  std::ifstream in("/proc/self/smaps");
  bool shared = false;
  size_t resident = 0, own = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string key;
    size_t kilobytes = 0;
    words >> key;
    if (!key.ends_with(':')) {  // "7f0000000000-7f0000001000 rw-s 00000000 00:01 5 /memfd:..."
      shared = line.find(" /memfd:") != std::string::npos;
    } else if (shared && (key == "Rss:" || key == "Pss:") && words >> kilobytes) {
      (key == "Rss:" ? resident : own) += kilobytes << 10;
    }
  }
  return resident - std::min(resident, own);
}

}  // namespace

size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  size_t pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const size_t peak = static_cast<size_t>(usage.ru_maxrss) << 10;
  return peak - std::min(peak, of_others());
}

MemoryLimit memory_limit(int siblings) {
  struct sysinfo info {};
  sysinfo(&info);
  const double machine =
      (static_cast<double>(info.totalram) + static_cast<double>(info.totalswap)) * info.mem_unit;
  const double group = cgroup::memory_limit(siblings);
  if (group > 0 && group < machine / siblings) return {group, true};
  return {machine / siblings, false};
}

}  // namespace fleetx
