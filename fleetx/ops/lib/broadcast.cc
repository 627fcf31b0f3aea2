#include "fleetx/ops/lib/broadcast.h"

#include "fleetx/ir/example.h"

namespace fleetx::ops {
namespace {

// Strides of a row-major input that fills `dims`, 0 where it has one element only.
std::vector<int64_t> strides_of(const std::vector<int64_t>& dims) {
  std::vector<int64_t> out(dims.size(), 0);
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] != 1) out[d] = stride;
    stride *= dims[d];
  }
  return out;
}

}  // namespace

std::vector<int64_t> align_dims(const Shape& small, int rank, int64_t axis) {
  std::vector<int64_t> dims = small.dims();
  const int64_t before = axis < 0 ? rank - small.rank() : axis;
  while (before + static_cast<int64_t>(dims.size()) > rank && !dims.empty() && dims.back() == 1)
    dims.pop_back();
  if (before < 0 || before + static_cast<int64_t>(dims.size()) > rank) return {};
  std::vector<int64_t> out(static_cast<size_t>(rank), 1);
  std::copy(dims.begin(), dims.end(), out.begin() + before);
  return out;
}

Shape broadcast_shape(const ir::Infer& c) {
  const Shape &x = c.in("x").shape, &y = c.in("y").shape;
  const auto axis = c.attr<int64_t>("axis");
  c.check(axis >= -1 && (axis == -1 || axis < std::max(1, x.rank())), "axis is ", axis, ", but ",
          c.show("x"));
  const int rank = axis < 0 ? std::max(x.rank(), y.rank()) : x.rank();
  const std::vector<int64_t> a = align_dims(x, rank, -1), b = align_dims(y, rank, axis);
  const auto fits = [&] {
    if (a.size() != b.size()) return false;
    for (size_t d = 0; d < a.size(); ++d)
      if (a[d] != b[d] && a[d] != 1 && b[d] != 1 && !ir::is_example(c, a[d]) &&
          !ir::is_example(c, b[d]))
        return false;
    return true;
  };
  c.check(fits(), c.show("x"), ", ", c.show("y"), "; they do not broadcast with axis=", axis);
  Shape out(a);
  for (int d = 0; d < rank; ++d)
    // Beside a known length an unknown one will be the same, or 1.
    if (out[d] == 1 || (ir::is_example(c, out[d]) && b[static_cast<size_t>(d)] != 1))
      out[d] = b[static_cast<size_t>(d)];
  return out;
}

Broadcast::Broadcast(const Shape& out, const Shape& x, const Shape& y, int64_t axis,
                     const Layout& layout)
    : numel_(layout.stored(out)) {
  const int rank = out.rank();
  const std::vector<int64_t> xs = strides_of(align_dims(x, rank, -1)),
                             ys = strides_of(align_dims(y, rank, axis));
  // The dimensions as they lie in memory, innermost first: a blocked one is there several times.
  std::vector<Dim> memory;
  const Shape padded = layout.padded(out);
  std::vector<int64_t> done(static_cast<size_t>(rank), 1);
  int64_t stride = 1;
  const auto add = [&](int dim, int64_t size) {
    const auto d = static_cast<size_t>(dim);
    memory.push_back(
        {size, x == out ? stride : xs[d] * done[d], y == out ? stride : ys[d] * done[d]});
    stride *= size;
    done[d] *= size;
  };
  for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block)
    add(block->dim, block->size);
  for (int position = rank - 1; position >= 0; --position) {
    const int dim = layout.order.empty() ? position : layout.order[static_cast<size_t>(position)];
    add(dim, padded[dim] / done[static_cast<size_t>(dim)]);
  }
  std::vector<Dim> merged;
  for (const Dim& dim : memory) {
    if (dim.size == 1) continue;
    Dim* last = merged.empty() ? nullptr : &merged.back();
    if (last && dim.x == last->x * last->size && dim.y == last->y * last->size)
      last->size *= dim.size;
    else
      merged.push_back(dim);
  }
  if (!merged.empty()) dims_.assign(merged.rbegin(), merged.rend());
}

bool Broadcast::contiguous() const { return dims_.back().x <= 1 && dims_.back().y <= 1; }

}  // namespace fleetx::ops
