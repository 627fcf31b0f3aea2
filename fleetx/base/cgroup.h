// The CPU time that control groups grant this process: what a container's limit is made of.
#pragma once

#include <filesystem>

namespace fleetx::cgroup {

// In cores (150 ms of every 100 ms: 1.5), the smallest of this process's group and all groups
// around it that can be seen; 0: no limit. Knows version 2 (cpu.max) and version 1
// (cpu.cfs_quota_us, cpu.cfs_period_us), also side by side. What cannot be read limits nothing.
// A test gives another folder than / for proc/self/{cgroup,mountinfo} and the mount points.
double cpu_quota(const std::filesystem::path& root = "/");

}  // namespace fleetx::cgroup
