// Sizes of sliding windows (convolution, pooling): 3 means 3x3, {3, 5} is height and width.
#pragma once

#include <string>

#include "fleetx/nn/call.h"

namespace fleetx::nn {

struct Size2 {
  Size2(int64_t both) : height(both), width(both) {}  // NOLINT: .stride = 2
  Size2(int64_t h, int64_t w) : height(h), width(w) {}
  ir::Ints ints() const { return {height, width}; }

  int64_t height, width;
};

// A number, {height, width}, {top, bottom, left, right}, "SAME" (out = ceil(in / stride); an odd
// rest goes to the bottom and right) or "VALID" (none).
class Padding {
 public:
  Padding(int all) : sizes_{all, all} {}      // NOLINT: .padding = 1
  Padding(int64_t all) : sizes_{all, all} {}  // NOLINT
  Padding(int64_t height, int64_t width) : sizes_{height, width} {}
  Padding(int64_t top, int64_t bottom, int64_t left, int64_t right)
      : sizes_{top, bottom, left, right} {}
  Padding(std::string mode) : mode_(std::move(mode)) {}  // NOLINT
  Padding(const char* mode) : mode_(mode) {}             // NOLINT: .padding = "SAME"

  bool is_same() const { return mode_ == "SAME"; }
  // The op's attribute for images [N, C, H, W]; "SAME" needs H and W to be known.
  ir::Ints resolve(const Var& image, Size2 kernel, Size2 stride, Size2 dilation,
                   const Where& where) const;

 private:
  ir::Ints sizes_ = {0, 0};
  std::string mode_;
};

}  // namespace fleetx::nn
