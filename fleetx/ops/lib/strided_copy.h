// Copies between two strided views of one shape, for elements of any type: the work of transpose,
// slice, concat, expand, tile, flip and their gradients. The constructor finds the longest
// contiguous runs and chooses a loop; run is parallel and allocates nothing.
//
//   // out[j][i] = in[i][j] for a row-major in[rows][cols]
//   StridedCopy copy(4, {{cols, 1, rows}, {rows, cols, 1}});
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fleetx/base/dtype.h"
#include "fleetx/base/shape.h"

namespace fleetx::ops {

class StridedCopy {
 public:
  // Strides in elements. An input stride may be zero (repeat) or negative (backwards); different
  // indices must not meet in the output.
  struct Dim {
    int64_t size, in, out;
  };

  StridedCopy() = default;
  StridedCopy(size_t element_bytes, const std::vector<Dim>& dims);

  void run(const void* in, void* out) const;
  // "memcpy", "rows", "transpose" or "elements".
  std::string_view kind() const;

 private:
  enum class Loop : uint8_t { kRows, kTranspose, kElements };
  static constexpr int kMaxDims = 16;

  void set_loop();
  template <int kBytes>
  void run_typed(const char* in, char* out) const;
  template <class Action>
  void for_each(const char* in, char* out, const Action& action) const;

  Loop loop_ = Loop::kRows;
  int64_t unit_ = 0;        // bytes that lie together on both sides
  int64_t item_bytes_ = 1;  // bytes that one step of the outer loops copies, at most
  int64_t items_ = 0;       // steps of the outer loops
  std::vector<Dim> outer_;  // strides in bytes; the last one or two may count blocks
  Dim inner_{}, across_{};  // kElements: inner_; kTranspose: inner_ writes, across_ reads, unit by
                            // unit; strides in bytes
};

// Row-major strides in elements.
std::vector<int64_t> strides_of(const Shape& shape);

// memset to zero by all threads.
void zero_fill(void* data, size_t bytes);
// n times the value, as that dtype has it, by all threads.
void fill(void* data, DType dtype, int64_t n, double value);

}  // namespace fleetx::ops
