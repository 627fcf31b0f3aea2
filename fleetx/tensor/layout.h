// How the elements of a tensor lie in memory. Plain is row-major. Otherwise the dimensions have an
// order (outermost first) and some are split into inner blocks: nChw16c is order [0,1,2,3] with one
// block of 16 on dimension 1. A dimension that a block does not divide is padded; the padding is
// always zero.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "fleetx/base/dtype.h"
#include "fleetx/base/shape.h"

namespace fleetx {

struct Layout {
  struct Block {
    int dim;
    int64_t size;
    bool operator==(const Block&) const = default;
  };

  std::vector<int> order;     // empty: row-major
  std::vector<Block> blocks;  // innermost last

  static Layout plain() { return {}; }
  bool is_plain() const { return order.empty() && blocks.empty(); }
  bool operator==(const Layout&) const = default;

  // Product of the blocks on one dimension (1 if it has none).
  int64_t block_of(int dim) const;
  // Shape with every blocked dimension rounded up to its block.
  Shape padded(const Shape& shape) const;
  bool has_padding(const Shape& shape) const { return padded(shape) != shape; }
  // Elements that are stored, padding included.
  int64_t stored(const Shape& shape) const {
    return is_plain() ? shape.numel() : padded(shape).numel();
  }
  // Offset (in elements) of a coordinate. Slow: for references, tests and small conversions.
  int64_t offset(const Shape& shape, const std::vector<int64_t>& index) const;
};

std::ostream& operator<<(std::ostream& out, const Layout& layout);  // plain, or e.g. 0123:1x16

// Copies between layouts, filling padding with zeros. Plain loops: the plan's own reorders use
// oneDNN; this one serves save, load and conversion of parameters.
void convert_layout(DType dtype, const Shape& shape, const void* from, const Layout& from_layout,
                    void* to, const Layout& to_layout);

}  // namespace fleetx
