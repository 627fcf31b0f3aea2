#include "fleetx/tensor/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace fleetx {
namespace {

// What the kernel says of the mapping that starts at `address` (proc(5), smaps), or "".
std::string mapping_at(const void* address) {
  std::ostringstream start;
  start << std::hex << reinterpret_cast<uintptr_t>(address) << "-";
  std::ifstream maps("/proc/self/smaps");
  std::string text;
  for (std::string line; std::getline(maps, line);) {
    const bool new_mapping = line.find('-') < line.find(' ');
    if (new_mapping && !text.empty()) break;
    if (!text.empty() || line.starts_with(start.str())) text += line + "\n";
  }
  return text;
}

TEST(Buffer, LargeOnesAskForHugePages) {
  constexpr size_t kHugePage = 2 << 20;
  const Buffer buffer = Buffer::allocate(2 * kHugePage + 5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kHugePage, 0U);
  const std::string mapping = mapping_at(buffer.data());
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this kernel has no huge pages";
  const size_t flags = mapping.find("VmFlags:");
  ASSERT_NE(flags, std::string::npos) << mapping;
  EXPECT_NE(mapping.find(" hg", flags), std::string::npos) << mapping;
}

TEST(Buffer, AllAreAlignedAndZero) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20}) {
    const Buffer buffer = Buffer::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0U) << bytes;
    const auto* data = static_cast<const char*>(buffer.data());
    EXPECT_TRUE(std::all_of(data, data + bytes, [](char c) { return c == 0; })) << bytes;
  }
}

}  // namespace
}  // namespace fleetx
