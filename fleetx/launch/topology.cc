#include "fleetx/launch/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <memory>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/base/threads.h"

namespace fleetx::launch {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

Topology load() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Topology owned(topology);
  // Only usable cores: discovering the rest takes time.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_flags(
      topology, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
  if (hwloc_topology_load(topology) != 0) return nullptr;
  return owned;
}

}  // namespace

std::vector<Core> usable_cores() {
  std::vector<Core> cores;
  const Topology topology = load();
  if (!topology) return cores;
  const int count = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t object =
        hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    Core core;
    for (int cpu = hwloc_bitmap_first(object->cpuset); cpu >= 0;
         cpu = hwloc_bitmap_next(object->cpuset, cpu))
      core.cpus.push_back(cpu);
    if (core.cpus.empty()) continue;
    core.number = core.cpus.front();
    cores.push_back(core);
  }
  return cores;
}

std::vector<Share> share_cores(const std::vector<Core>& cores, int shares, double quota) {
  std::vector<Share> result(static_cast<size_t>(std::max(shares, 0)));
  const size_t n = result.size();
  if (cores.size() < n || cores.empty()) return result;
  size_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t take = cores.size() / n + (i < cores.size() % n ? 1 : 0);
    const auto begin = cores.begin() + static_cast<std::ptrdiff_t>(next);
    result[i].cores.assign(begin, begin + static_cast<std::ptrdiff_t>(take));
    result[i].threads = threads_within(static_cast<int>(take), quota / static_cast<double>(n));
    next += take;
  }
  return result;
}

std::string describe(const Share& share) {
  if (share.cores.empty()) return "all cores";
  std::vector<std::string> ranges;
  for (size_t i = 0; i < share.cores.size();) {
    size_t last = i;
    while (last + 1 < share.cores.size() &&
           share.cores[last + 1].number == share.cores[last].number + 1)
      ++last;
    const int from = share.cores[i].number, to = share.cores[last].number;
    ranges.push_back(from == to ? str(from) : str(from, "-", to));
    i = last + 1;
  }
  return str(share.cores.size() == 1 ? "core " : "cores ", join(ranges, ","));
}

}  // namespace fleetx::launch
