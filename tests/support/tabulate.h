// For references of ops that move elements: a tensor from a function of the index, and an element
// at an index.
#pragma once

#include <vector>

#include "fleetx/tensor/tensor.h"

namespace fleetx::testing {

using Index = std::vector<int64_t>;

inline size_t offset_of(const Shape& shape, const Index& index) {
  FLEETX_CHECK(index.size() == static_cast<size_t>(shape.rank()), "index of rank ", index.size(),
               " into ", shape);
  int64_t out = 0;
  for (int d = 0; d < shape.rank(); ++d) out = out * shape[d] + index[static_cast<size_t>(d)];
  return static_cast<size_t>(out);
}

template <class T = float>
T& at(const Tensor& x, const Index& index) {
  return x.data<T>()[offset_of(x.shape(), index)];
}

template <class T = float, class Fn>
Tensor tabulate(const Shape& shape, const Fn& fn) {
  Tensor out(DTypeOf<T>::value, shape);
  Index index(static_cast<size_t>(shape.rank()));
  for (int64_t i = 0; i < shape.numel(); ++i) {
    int64_t rest = i;
    for (int d = shape.rank() - 1; d >= 0; rest /= shape[d], --d)
      index[static_cast<size_t>(d)] = rest % shape[d];
    out.data<T>()[static_cast<size_t>(i)] = fn(index);
  }
  return out;
}

}  // namespace fleetx::testing
