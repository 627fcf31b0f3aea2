#include "fleetx/tensor/layout.h"

#include <cstring>
#include <numeric>
#include <ostream>

#include "fleetx/base/error.h"

namespace fleetx {
namespace {

// Offsets of a layout are a sum of one term per dimension, so a table per dimension makes copying
// fast enough.
std::vector<std::vector<int64_t>> offset_tables(const Layout& layout, const Shape& shape) {
  const Shape padded = layout.padded(shape);
  const int rank = shape.rank();
  std::vector<std::vector<int64_t>> table(static_cast<size_t>(rank));
  for (int d = 0; d < rank; ++d)
    table[static_cast<size_t>(d)].assign(static_cast<size_t>(padded[d]), 0);

  // Inner blocks, innermost (last) first: each contributes (index / done % size) * stride.
  int64_t stride = 1;
  std::vector<int64_t> done(static_cast<size_t>(rank), 1);
  for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block) {
    const auto d = static_cast<size_t>(block->dim);
    for (size_t i = 0; i < table[d].size(); ++i)
      table[d][i] += (static_cast<int64_t>(i) / done[d]) % block->size * stride;
    stride *= block->size;
    done[d] *= block->size;
  }
  for (int position = rank - 1; position >= 0; --position) {
    const int dim = layout.order.empty() ? position : layout.order[static_cast<size_t>(position)];
    const auto d = static_cast<size_t>(dim);
    for (size_t i = 0; i < table[d].size(); ++i)
      table[d][i] += static_cast<int64_t>(i) / done[d] * stride;
    stride *= padded[dim] / done[d];
  }
  return table;
}

template <class Unit>
void copy_elements(const std::vector<std::vector<int64_t>>& from,
                   const std::vector<std::vector<int64_t>>& to, const Shape& shape, const Unit* src,
                   Unit* dst) {
  const int rank = shape.rank();
  std::vector<int64_t> index(static_cast<size_t>(rank), 0);
  const int64_t total = shape.numel();
  const int last = rank - 1;
  for (int64_t done = 0; done < total;) {
    int64_t a = 0, b = 0;
    for (int d = 0; d < last; ++d) {
      a += from[static_cast<size_t>(d)][static_cast<size_t>(index[static_cast<size_t>(d)])];
      b += to[static_cast<size_t>(d)][static_cast<size_t>(index[static_cast<size_t>(d)])];
    }
    const auto& fa = from[static_cast<size_t>(last)];
    const auto& fb = to[static_cast<size_t>(last)];
    for (int64_t i = 0; i < shape[last]; ++i)
      dst[b + fb[static_cast<size_t>(i)]] = src[a + fa[static_cast<size_t>(i)]];
    done += shape[last];
    for (int d = last - 1; d >= 0; --d) {
      if (++index[static_cast<size_t>(d)] < shape[d]) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
}

}  // namespace

int64_t Layout::block_of(int dim) const {
  int64_t product = 1;
  for (const Block& block : blocks)
    if (block.dim == dim) product *= block.size;
  return product;
}

Shape Layout::padded(const Shape& shape) const {
  Shape out = shape;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t block = block_of(d);
    out[d] = (shape[d] + block - 1) / block * block;
  }
  return out;
}

int64_t Layout::offset(const Shape& shape, const std::vector<int64_t>& index) const {
  const auto table = offset_tables(*this, shape);
  int64_t sum = 0;
  for (size_t d = 0; d < index.size(); ++d) sum += table[d][static_cast<size_t>(index[d])];
  return sum;
}

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  if (layout.is_plain()) return out << "plain";
  for (const int d : layout.order) out << d;
  const char* separator = ":";
  for (const Layout::Block& block : layout.blocks) {
    out << separator << block.dim << 'x' << block.size;
    separator = ",";
  }
  return out;
}

void convert_layout(DType dtype, const Shape& shape, const void* from, const Layout& from_layout,
                    void* to, const Layout& to_layout) {
  const size_t unit = size_of(dtype);
  if (from_layout == to_layout || shape.rank() == 0) {
    std::memcpy(to, from, static_cast<size_t>(to_layout.stored(shape)) * unit);
    return;
  }
  if (to_layout.has_padding(shape))
    std::memset(to, 0, static_cast<size_t>(to_layout.stored(shape)) * unit);
  if (shape.numel() == 0) return;
  const auto a = offset_tables(from_layout, shape), b = offset_tables(to_layout, shape);
  switch (unit) {
    case 1:
      return copy_elements(a, b, shape, static_cast<const uint8_t*>(from),
                           static_cast<uint8_t*>(to));
    case 2:
      return copy_elements(a, b, shape, static_cast<const uint16_t*>(from),
                           static_cast<uint16_t*>(to));
    case 4:
      return copy_elements(a, b, shape, static_cast<const uint32_t*>(from),
                           static_cast<uint32_t*>(to));
    case 8:
      return copy_elements(a, b, shape, static_cast<const uint64_t*>(from),
                           static_cast<uint64_t*>(to));
    default: FLEETX_CHECK(false, "element size ", unit);
  }
}

}  // namespace fleetx
