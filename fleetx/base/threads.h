// Threads: one number for the whole process. Work is cut in fixed, equal parts, so a reduction that
// keeps one partial result per part has the same order in every run. base/team.h runs the parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "fleetx/base/team.h"

namespace fleetx {

// FLEETX_THREADS or OMP_NUM_THREADS, or else what this process may really use: physical cores of
// its affinity mask, within the CPU quota of its control group.
int default_threads();
int physical_cores();  // respects the affinity mask

// Threads for a number of cores, within a quota (in cores; 0: none). A quota of 1.5 is worth two
// threads, one of 1.25 is not: where the quota is used up before the period ends, all threads
// stop.
int threads_within(int cores, double quota);

// The number in force. Set it before the first plan is made; plans are built for it.
int num_threads();
void set_num_threads(int threads);
// "2 compute threads on 64 physical cores (cgroup quota 2.0)"
std::string describe_threads();

// oneDNN asks OpenMP how many threads it has, and OpenMP answers each thread for itself.
void tell_openmp();

// Denormals slow arithmetic down 100 times and carry no information for training: flush them in
// this thread, and in the regions that it starts.
void flush_denormals();

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
  struct Context {
    const Body& body;
    int64_t n;
    int parts;
  } context{body, n, parts};
  const auto run_part = [](void* opaque, int part) {
    const Context& c = *static_cast<const Context*>(opaque);
    c.body(part, c.n * part / c.parts, c.n * (part + 1) / c.parts);
  };
  team::run(parts, run_part, &context);
}

// body(begin, end) over [0, n), in parallel when there are at least two grains of work.
template <class Body>
void parallel_for(int64_t n, int64_t grain, const Body& body) {
  parallel_parts(n, parts_for(n, grain),
                 [&](int, int64_t begin, int64_t end) { body(begin, end); });
}

// body() once in each of the threads that will run the parts of later regions.
template <class Body>
void on_every_thread(const Body& body) {
  const auto run_part = [](void* opaque, int) { (*static_cast<const Body*>(opaque))(); };
  team::run(num_threads(), run_part, const_cast<Body*>(std::addressof(body)),
            team::Runs::kEverywhere);
}

}  // namespace fleetx
