#include "fleetx/base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx {
namespace {

using testing::expect_error;
using testing::TempDir;
constexpr auto kArgument = Error::Kind::kInvalidArgument;

TEST(File, WhatIsWrittenIsRead) {
  const TempDir dir;
  write_file(dir / "a", "hello");
  EXPECT_EQ(read_file(dir / "a"), "hello");
  write_file(dir / "a", "");
  EXPECT_EQ(read_file(dir / "a"), "");
  const FileReader file(dir / "a");
  EXPECT_EQ(file.size(), 0u);
  sync_folder(dir.path());
}

TEST(File, ErrorsNameThePath) {
  const TempDir dir;
  expect_error(kArgument, {"nope", "No such file"}, [&] { read_file(dir / "nope"); });
  expect_error(kArgument, {dir.path(), "not a regular file"}, [&] { read_file(dir.path()); });
  expect_error(kArgument, {"x/y", "No such file"}, [&] { write_file(dir / "x/y", "z"); });
  write_file(dir / "b", "0123456789");
  expect_error(Error::Kind::kCorrupt, {"/b", "10 bytes", "at most 4"},
               [&] { read_file(dir / "b", 4); });
  char more[4];
  expect_error(Error::Kind::kCorrupt, {"/b", "ends at byte 10, 2 more"},
               [&] { FileReader(dir / "b").read_at(8, more, 4); });
}

// A limit of the process stands for a disk without room.
TEST(File, WhatCannotBeCompletedIsRemoved) {
  const TempDir dir;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error(Error::Kind::kUnsupported, {"cannot write", "/a", "too large"},
               [&] { write_file(dir / "a", std::string(2 << 20, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_FALSE(std::filesystem::exists(dir / "a"));
}

}  // namespace
}  // namespace fleetx
