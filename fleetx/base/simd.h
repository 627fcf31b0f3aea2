// Run-time dispatch of plain loops by instruction set. The body is compiled three times, and the
// best version for this CPU runs:
//
//   vectorized([=] { for (int64_t i = 0; i < n; ++i) y[i] = alpha * x[i]; });
//
// Capture by value, so that the optimizer sees local variables; everything the body calls must be
// inlinable.
#pragma once

#include <type_traits>

#include "fleetx/base/cpu.h"

namespace fleetx {

// The instruction set for these loops, read once.
inline cpu::Isa vector_isa() {
  static const cpu::Isa isa = cpu::best_isa();
  return isa;
}

namespace detail {

// The local copy of the body lets the optimizer keep what it captured in registers: loads through a
// reference inside a loop keep the loop from being vectorised.
template <class Body>
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,bmi2,f16c"), flatten,
               noinline)) void
run_avx512(const Body& body) {
  const Body local = body;
  local();
}
template <class Body>
__attribute__((target("avx2,fma,bmi2,f16c"), flatten, noinline)) void run_avx2(const Body& body) {
  const Body local = body;
  local();
}
template <class Body>
__attribute__((flatten, noinline)) void run_sse(const Body& body) {
  const Body local = body;
  local();
}

}  // namespace detail

template <class Body>
void vectorized(const Body& body) {
  const cpu::Isa isa = vector_isa();
  if (isa >= cpu::Isa::kAvx512) return detail::run_avx512(body);
  if (isa >= cpu::Isa::kAvx2) return detail::run_avx2(body);
  detail::run_sse(body);
}

// For templates over element types: a version per instruction set for floats, one for the others.
template <class T, class Body>
void vectorized_for(const Body& body) {
  if constexpr (std::is_floating_point_v<T>)
    vectorized(body);
  else
    body();
}

}  // namespace fleetx
