#include "fleetx/base/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "fleetx/base/error.h"
#include "fleetx/base/threads.h"

namespace fleetx {
namespace {

namespace fs = std::filesystem;

// A made-up root folder.
class Cgroup : public testing::Test {
 protected:
  Cgroup() { fs::remove_all(root_); }
  ~Cgroup() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // One hierarchy of version 2, as systemd mounts it.
  void version_2(const std::string& group, const std::string& mounted = "/") {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 23 0:26 " + mounted +
                                     " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  }
  void version_1(const std::string& group, const std::string& mounted = "/") {
    write("proc/self/cgroup", "5:cpuset:/elsewhere\n4:cpu,cpuacct:" + group + "\n0::/\n");
    write("proc/self/mountinfo",
          "31 30 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
          "32 30 0:30 " +
              mounted + " /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n");
  }
  double quota() const { return cgroup::cpu_quota(root_); }

  fs::path root_ = fs::path(testing::TempDir()) / str("fleetx_cgroup_", getpid());
};

TEST_F(Cgroup, NothingThereLimitsNothing) { EXPECT_EQ(quota(), 0); }

TEST_F(Cgroup, Version2) {
  version_2("/box");
  write("sys/fs/cgroup/box/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
  write("sys/fs/cgroup/box/cpu.max", "20000 10000\n");
  EXPECT_DOUBLE_EQ(quota(), 2);
  write("sys/fs/cgroup/box/cpu.max", "50000\n");
  EXPECT_DOUBLE_EQ(quota(), 0.5) << "the period is 100 ms where it is left out";
  write("sys/fs/cgroup/box/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(Cgroup, TheTightestAncestorCounts) {
  version_2("/a/b/c");
  write("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "300000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2);
  write("sys/fs/cgroup/a/b/c/cpu.max", "100000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1);
  write("sys/fs/cgroup/cpu.max", "70000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 0.7) << "the root of what a container sees has a limit, too";
  write("sys/fs/cgroup/other/cpu.max", "10000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 0.7) << "a group that this process is not in";
}

TEST_F(Cgroup, AContainerSeesItsOwnGroupAsTheRoot) {
  version_2("/");  // with a namespace of its own
  write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2);
  version_1("/docker/7f/job", "/docker/7f");  // without: paths are those of the host
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2.5);
  version_1("/../elsewhere", "/");  // moved out of what is mounted
  EXPECT_DOUBLE_EQ(quota(), 4);
}

TEST_F(Cgroup, Version1) {
  version_1("/jobs/a");
  write("sys/fs/cgroup/cpu/jobs/a/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/jobs/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "75000\n");
  write("sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "50000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
  write("sys/fs/cgroup/cpu/elsewhere/cpu.cfs_quota_us", "1000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5) << "the path of another controller";
}

TEST_F(Cgroup, BlanksInPaths) {
  version_2("/my job");
  write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/c\\040group rw - cgroup2 cgroup2 rw\n");
  write("sys/fs/c group/my job/cpu.max", "300000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 3);
}

TEST_F(Cgroup, WhatCannotBeReadLimitsNothing) {
  version_2("/box");
  for (const char* text : {"", "\n", "none of it", "1e", "100000 0", "-5 100000", "0 100000",
                           "100000 100000 7", "nan 100000"}) {
    write("sys/fs/cgroup/box/cpu.max", text);
    EXPECT_EQ(quota(), 0) << "'" << text << "'";
  }
  write("sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_DOUBLE_EQ(quota(), 2) << "the other groups still count";
  write("proc/self/mountinfo", "-\n - cgroup2\n30 23 0:26 / /sys - cgroup2\n- - - - - -\n");
  EXPECT_EQ(quota(), 0);
  write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0\n::\n0:\n\n");
  EXPECT_EQ(quota(), 0);
}

// ---- memory ----

TEST_F(Cgroup, MemoryOfVersion2) {
  version_2("/a/b");
  EXPECT_EQ(cgroup::memory_limit(1, root_), 0);
  write("sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_EQ(cgroup::memory_limit(1, root_), 0);
  write("sys/fs/cgroup/a/memory.max", "8589934592\n");
  write("sys/fs/cgroup/a/b/memory.max", "9000000000\n");
  EXPECT_EQ(cgroup::memory_limit(1, root_), 8589934592.0);
}

TEST_F(Cgroup, MemoryOfVersion1) {
  write("proc/self/cgroup", "5:cpu:/elsewhere\n4:memory:/job\n0::/\n");
  write("proc/self/mountinfo",
        "31 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "32 30 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup::memory_limit(1, root_), 0) << "this number stands for none";
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(cgroup::memory_limit(1, root_), 1073741824.0);
}

TEST_F(Cgroup, MemoryOfAGroupThatTheLauncherIsInIsDivided) {
  version_2("/job/worker_0");
  write("sys/fs/cgroup/job/memory.max", "8000\n");
  EXPECT_EQ(cgroup::memory_limit(2, root_), 4000) << "who knows where the launcher is";
  write(str("proc/", getppid(), "/cgroup"), "0::/job/launcher\n");
  EXPECT_EQ(cgroup::memory_limit(2, root_), 4000);
  write("sys/fs/cgroup/job/worker_0/memory.max", "5000\n");
  EXPECT_EQ(cgroup::memory_limit(2, root_), 4000);
  write("sys/fs/cgroup/job/worker_0/memory.max", "3000\n");
  EXPECT_EQ(cgroup::memory_limit(2, root_), 3000) << "for this process alone";
  write(str("proc/", getppid(), "/cgroup"), "0::/jobs\n");
  EXPECT_EQ(cgroup::memory_limit(4, root_), 3000);
  write(str("proc/", getppid(), "/cgroup"), "0::/job/worker_0\n");
  EXPECT_EQ(cgroup::memory_limit(4, root_), 750);
}

TEST(Threads, AQuotaLimitsThem) {
  EXPECT_EQ(threads_within(64, 0), 64);
  EXPECT_EQ(threads_within(64, 2), 2);
  EXPECT_EQ(threads_within(64, 100), 64);
  EXPECT_EQ(threads_within(64, 1.5), 2);
  EXPECT_EQ(threads_within(64, 1.25), 1);
  EXPECT_EQ(threads_within(64, 0.1), 1);
  EXPECT_EQ(threads_within(2, 1.9), 2);
}

}  // namespace
}  // namespace fleetx
