// The arithmetic of reductions: one function, in a fixed order, used by every backend.
#pragma once

#include <cstdint>
#include <span>

#include "fleetx/base/dtype.h"
#include "fleetx/comm/communicator.h"

namespace fleetx::comm {

// Every destination gets sources[0] op sources[1] op ... element by element; an average divides
// their sum by `divisor`. A destination may be one of the sources.
void reduce_vectors(DType dtype, ReduceOp op, std::span<const void* const> sources,
                    std::span<void* const> destinations, int64_t count, int divisor);

// The type that sums of `dtype` are kept in (f32 for halves, i32 for u8), and conversion to it and
// back.
DType sum_type(DType dtype);
void convert(DType from_type, const void* from, DType to_type, void* to, int64_t count);

// memcpy of the C library is slow for some pairs of addresses; this one is not.
void copy(void* to, const void* from, size_t bytes);

}  // namespace fleetx::comm
