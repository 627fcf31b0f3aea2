#include "fleetx/runtime/memory.h"

#include <algorithm>
#include <map>

#include "fleetx/tensor/buffer.h"

namespace fleetx::runtime {
namespace {

// Large power-of-two blocks would all start at the same place of a 4 KB page, where loads and
// stores of different blocks disturb each other; a few cache lines of room between them prevent
// that.
constexpr size_t kLarge = size_t{1} << 16;
constexpr size_t kSkew = 5 * kAlignment;

size_t footprint(const Block& block) {
  const size_t bytes = align_up(block.bytes == 0 ? 1 : block.bytes);
  return bytes >= kLarge ? bytes + kSkew : bytes;
}

bool overlap_in_time(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

size_t pack(std::vector<Block*> blocks, Packing packing) {
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
  std::vector<Block*> placed;  // by offset
  size_t end = 0;
  for (Block* block : blocks) {
    const size_t need = footprint(*block);
    size_t offset = 0;
    for (const Block* other : placed) {
      if (packing == Packing::kReuse && !overlap_in_time(*block, *other)) continue;
      if (other->offset >= offset + need) break;  // the gap before `other` is large enough
      offset = std::max(offset, other->offset + footprint(*other));
    }
    block->offset = offset;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), block,
                         [](const Block* a, const Block* b) { return a->offset < b->offset; }),
        block);
    end = std::max(end, offset + need);
  }
  return end;
}

size_t live_peak(const std::vector<Block*>& blocks) {
  std::map<int, long long> change;
  for (const Block* block : blocks) {
    change[block->first] += static_cast<long long>(footprint(*block));
    change[block->last + 1] -= static_cast<long long>(footprint(*block));
  }
  long long live = 0, peak = 0;
  for (const auto& [step, delta] : change) peak = std::max(peak, live += delta);
  return static_cast<size_t>(peak);
}

}  // namespace fleetx::runtime
