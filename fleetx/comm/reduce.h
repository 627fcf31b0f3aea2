// The arithmetic of reductions: one place, in the order of reduction_tree.h, used by every backend.
#pragma once

#include <cstdint>
#include <span>

#include "fleetx/base/dtype.h"
#include "fleetx/comm/communicator.h"
#include "fleetx/comm/reduction_tree.h"

namespace fleetx::comm {

// The vector of a rank, or the sum of a node of the tree in the type of sums.
struct Operand {
  const void* data = nullptr;
  RankRange ranks;
  bool is_sum = false;
};

// Every destination gets the reduction of all sources, one for each rank, element by element; an
// average divides their sum by `divisor`. A destination may be one of the sources.
void reduce_vectors(DType dtype, ReduceOp op, std::span<const void* const> sources,
                    std::span<void* const> destinations, int64_t count, int divisor);

// The same where some nodes of the tree are known already. The operands are in the order of their
// ranks and together all ranks.
void reduce_operands(DType dtype, ReduceOp op, std::span<const Operand> operands,
                     std::span<void* const> destinations, int64_t count, int divisor);

// The sum of a node: in the type of sums, and not divided for an average.
void reduce_node(DType dtype, ReduceOp op, std::span<const void* const> sources, void* sum,
                 int64_t count);

// The type that sums of `dtype` are kept in: f32 for halves, i32 for u8.
DType sum_type(DType dtype);

// memcpy of the C library is slow for some pairs of addresses; this one is not.
void copy(void* to, const void* from, size_t bytes);

}  // namespace fleetx::comm
