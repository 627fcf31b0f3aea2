#include "fleetx/runtime/memory.h"

#include <gtest/gtest.h>

#include "fleetx/base/rng.h"

namespace fleetx::runtime {
namespace {

void expect_no_clash(const std::vector<Block>& blocks, size_t arena) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& a = blocks[i];
    EXPECT_EQ(a.offset % 64, 0u);
    EXPECT_LE(a.offset + a.bytes, arena);
    for (size_t j = 0; j < i; ++j) {
      const Block& b = blocks[j];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

std::vector<Block*> pointers(std::vector<Block>& blocks) {
  std::vector<Block*> out;
  for (Block& b : blocks) out.push_back(&b);
  return out;
}

TEST(Memory, BlocksThatAreNotAliveTogetherShareBytes) {
  std::vector<Block> blocks{{1024, 0, 1, 0}, {1024, 2, 3, 0}, {1024, 1, 2, 0}};
  const size_t arena = pack(pointers(blocks));
  EXPECT_EQ(arena, 2048u);
  expect_no_clash(blocks, arena);
  EXPECT_EQ(pack(pointers(blocks), Packing::kNoReuse), 3072u);
}

TEST(Memory, RandomLifetimesNeverClashAndStayNearTheLowerBound) {
  const Philox random(5, 0);
  uint64_t next = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<Block> blocks;
    for (int i = 0; i < 200; ++i) {
      const int first = static_cast<int>(random.bits(next++) % 100);
      const int life = static_cast<int>(random.bits(next++) % 20);
      blocks.push_back({random.bits(next++) % 100000 + 1, first, first + life, 0});
    }
    const size_t arena = pack(pointers(blocks));
    expect_no_clash(blocks, arena);
    EXPECT_LE(arena, live_peak(pointers(blocks)) * 13 / 10);
  }
}

TEST(Memory, AStackOfActivationsIsPackedWithoutLoss) {
  // Forward values live until their backward step, as in training.
  std::vector<Block> blocks;
  const int layers = 50;
  for (int i = 0; i < layers; ++i) blocks.push_back({4096, i, 2 * layers - 1 - i, 0});
  const size_t arena = pack(pointers(blocks));
  EXPECT_EQ(arena, live_peak(pointers(blocks)));
}

}  // namespace
}  // namespace fleetx::runtime
