#include "fleetx/data/folder_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

TEST(FolderLock, OneAtATime) {
  const testing::TempDir dir;
  std::atomic<int> inside = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const FolderLock lock(dir / "lock");
      most = std::max(most.load(), ++inside);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      --inside;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(most, 1);
}

TEST(FolderLock, WaitCanBeCancelled) {
  const testing::TempDir dir;
  const FolderLock held(dir / "lock");
  EXPECT_THROW(FolderLock(dir / "lock", [] { throw std::runtime_error("enough"); }),
               std::runtime_error);
  testing::expect_error(Error::Kind::kInvalidArgument, {"no/folder/lock"},
                        [&] { FolderLock(dir / "no/folder/lock"); });
}

}  // namespace
}  // namespace fleetx::data
