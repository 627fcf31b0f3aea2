// The CPU time and memory that control groups grant this process: what a container's limits are
// made of.
#pragma once

#include <filesystem>

namespace fleetx::cgroup {

// In cores (150 ms of every 100 ms: 1.5), the smallest of this process's group and all groups
// around it that can be seen; 0: no limit. Knows version 2 (cpu.max) and version 1
// (cpu.cfs_quota_us, cpu.cfs_period_us), also side by side. What cannot be read limits nothing.
// A test gives another folder than / for proc/self/{cgroup,mountinfo} and the mount points.
double cpu_quota(const std::filesystem::path& root = "/");

// In bytes, likewise (memory.max, memory.limit_in_bytes); 0: no limit. `siblings` processes of one
// parent, a launcher, divide the limit of a group that the parent is in, too; that of a group of
// its own a process has for itself.
double memory_limit(int siblings = 1, const std::filesystem::path& root = "/");

}  // namespace fleetx::cgroup
