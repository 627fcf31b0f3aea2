#include "fleetx/ops/lib/half.h"

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"

namespace fleetx::ops {
namespace {

constexpr int64_t kGrain = 1 << 15;

// The compiler finds the best instructions for bf16 by itself. For f16 it finds none; vectors of
// eight are what AVX2 has, and where they are emulated each element is taken out and put back.
template <class From, class To>
void convert(const From* x, To* out, int64_t n) {
  vectorized([=] {
    int64_t i = 0;
    if constexpr (std::is_same_v<From, Half> || std::is_same_v<To, Half>)
      for (; i + 8 <= n; i += 8) store(out + i, load<Vector8>(x + i));
#pragma GCC ivdep
    for (; i < n; ++i) out[i] = static_cast<float>(x[i]);
  });
}

}  // namespace

void widen(DType from, const void* x, float* out, int64_t n) {
  with_storage(from, [=](auto zero) { convert(static_cast<const decltype(zero)*>(x), out, n); });
}

void narrow(const float* x, DType to, void* out, int64_t n) {
  with_storage(to, [=](auto zero) { convert(x, static_cast<decltype(zero)*>(out), n); });
}

void widen_all(DType from, const void* x, float* out, int64_t n) {
  const auto unit = static_cast<int64_t>(size_of(from));
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
    widen(from, static_cast<const char*>(x) + begin * unit, out + begin, end - begin);
  });
}

void narrow_all(const float* x, DType to, void* out, int64_t n) {
  const auto unit = static_cast<int64_t>(size_of(to));
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
    narrow(x + begin, to, static_cast<char*>(out) + begin * unit, end - begin);
  });
}

}  // namespace fleetx::ops
