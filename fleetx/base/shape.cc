#include "fleetx/base/shape.h"

#include <algorithm>
#include <limits>
#include <ostream>

namespace fleetx {

bool Shape::known() const {
  return std::all_of(dims_.begin(), dims_.end(), [](int64_t d) { return d >= 0; });
}

int64_t Shape::numel(int begin, int end) const {
  int64_t n = 1;
  for (int i = begin; i < end; ++i)
    if (__builtin_mul_overflow(n, (*this)[i], &n)) return std::numeric_limits<int64_t>::max();
  return n;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? "," : "") << shape[i];
  return out << ']';
}

}  // namespace fleetx
