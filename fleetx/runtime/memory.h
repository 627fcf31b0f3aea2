// Packs blocks with known lifetimes into one arena: two blocks share bytes only if they are never
// alive together.
#pragma once

#include <cstddef>
#include <vector>

namespace fleetx::runtime {

struct Block {
  size_t bytes = 0;
  int first = 0, last = 0;  // steps, both included
  size_t offset = 0;        // the result
};

enum class Packing { kReuse, kNoReuse };

// Assigns offsets and returns the size of the arena. Largest blocks first, each at the lowest
// offset that is free during its life: close to optimal for training programs, whose large blocks
// form a stack.
size_t pack(std::vector<Block*> blocks, Packing packing = Packing::kReuse);

// The most bytes alive at one step: no packing can be smaller.
size_t live_peak(const std::vector<Block*>& blocks);

}  // namespace fleetx::runtime
