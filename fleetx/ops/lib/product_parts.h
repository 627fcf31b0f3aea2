// How a product of matrices is cut, for threads and for caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fleetx/base/threads.h"

namespace fleetx::ops {

// The size of equal pieces of n: multiples of `unit`, which divides `most`.
inline int64_t piece(int64_t n, int64_t most, int64_t unit) {
  const int64_t pieces = (n + most - 1) / most;
  return ((n + pieces - 1) / pieces + unit - 1) / unit * unit;
}

// body(top, bottom, left, right) for the part of the result that each thread makes. A thread packs
// what it reads, so parts have the least border. They consist of whole units: what is summed in a
// unit does not depend on the number of threads.
template <class Body>
void for_each_part(int64_t rows, int64_t columns, int threads, int64_t row_unit,
                   int64_t column_unit, const Body& body) {
  int64_t down = 1;
  const auto border = [&](int64_t d) { return rows / d + columns / (threads / d); };
  for (int64_t d = 2; d <= threads; ++d)
    if (threads % d == 0 && border(d) < border(down)) down = d;
  const int64_t across = threads / down;
  const auto cut = [](int64_t n, int64_t unit, int64_t part, int64_t parts) {
    return std::min(n, (n + unit - 1) / unit * part / parts * unit);
  };
  parallel_parts(threads, threads, [&](int part, int64_t, int64_t) {
    const int64_t i = part / across, j = part % across;
    body(cut(rows, row_unit, i, down), cut(rows, row_unit, i + 1, down),
         cut(columns, column_unit, j, across), cut(columns, column_unit, j + 1, across));
  });
}

}  // namespace fleetx::ops
