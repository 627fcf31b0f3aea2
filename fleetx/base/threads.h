// Threads: OpenMP, one number for the whole process. Work is cut in fixed, equal parts, so a
// reduction that keeps one partial result per part has the same order in every run.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace fleetx {

// Physical cores this process may use, unless FLEETX_THREADS or OMP_NUM_THREADS says otherwise.
int default_threads();
int physical_cores();  // respects the affinity mask

// The number in force. Set it before the first plan is made; plans are built for it.
int num_threads();
void set_num_threads(int threads);

// Denormals slow arithmetic down 100 times and carry no information for training: flush them in
// this thread.
void flush_denormals();
// The same for every thread of the pool.
void flush_denormals_everywhere();

// Parts for n items when a part should have at least `grain` items.
inline int parts_for(int64_t n, int64_t grain) {
  if (n <= grain) return 1;
  return static_cast<int>(std::clamp<int64_t>(n / std::max<int64_t>(grain, 1), 1, num_threads()));
}

// body(part, begin, end) for each of `parts` equal ranges of [0, n). Must not throw.
template <class Body>
void parallel_parts(int64_t n, int parts, const Body& body) {
  if (parts <= 1) {
    body(0, int64_t{0}, n);
    return;
  }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int part = 0; part < parts; ++part) body(part, n * part / parts, n * (part + 1) / parts);
}

// body(begin, end) over [0, n), in parallel when there are at least two grains of work.
template <class Body>
void parallel_for(int64_t n, int64_t grain, const Body& body) {
  parallel_parts(n, parts_for(n, grain),
                 [&](int, int64_t begin, int64_t end) { body(begin, end); });
}

}  // namespace fleetx
