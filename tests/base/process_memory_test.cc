#include "fleetx/base/process_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace fleetx {
namespace {

constexpr size_t kMiB = 1 << 20;

TEST(ProcessMemory, CountsWhatIsTouched) {
  const size_t before = resident_bytes();
  std::vector<char> block(64 * kMiB, 1);
  EXPECT_GE(resident_bytes(), before + 60 * kMiB);
  EXPECT_GE(peak_resident_bytes(), before + 60 * kMiB);
  EXPECT_EQ(block[kMiB], 1);
}

// Two processes that have touched the same 64 MiB have 32 MiB each.
TEST(ProcessMemory, DividesWhatProcessesShare) {
  const int fd = memfd_create("fleetx", 0);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 64 * kMiB), 0);
  void* memory = mmap(nullptr, 64 * kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, 64 * kMiB);
  const size_t alone = peak_resident_bytes();
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready) + pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::memset(memory, 2, 64 * kMiB);
    char byte = 0;
    const bool told = write(ready[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 1;
    _exit(told ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_NEAR(static_cast<double>(alone - peak_resident_bytes()) / kMiB, 32, 4);
  ASSERT_EQ(write(done[1], &byte, 1), 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int end : {ready[0], ready[1], done[0], done[1], fd}) close(end);
  munmap(memory, 64 * kMiB);
}

TEST(ProcessMemory, ALimitIsDividedBetweenWorkers) {
  const MemoryLimit one = memory_limit(), four = memory_limit(4);
  EXPECT_GT(one.bytes, 256.0 * kMiB);
  EXPECT_LE(four.bytes, one.bytes);
  EXPECT_GE(four.bytes, one.bytes / 4 * 0.99);
}

}  // namespace
}  // namespace fleetx
