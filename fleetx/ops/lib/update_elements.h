// The inner loops of an update, for whoever has the memory: the kernels of optimizer ops
// (ops/lib/optimizer.h) and parameter servers (ops/update_rule.h). Call them inside vectorized().
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::ops {

// The gradient that a rule sees.
struct Decay {
  float scale, l1, l2;
  float operator()(float g, float p) const {
    return scale * g + l2 * p + ((p > 0 ? l1 : 0.0f) - (p < 0 ? l1 : 0.0f));
  }
};

// Rule: see optimizers/lib/rule.h.
template <class Rule>
struct UpdateElements {
  static constexpr size_t kCount = Rule::kStates.size();
  using Step = decltype(std::declval<const Rule&>().step(optim::StepArgs{}));
  using States = std::make_index_sequence<kCount>;

  struct Pointers {
    float* p;
    const float* g;
    std::array<float*, kCount> s;
  };

  static void update(const Step& step, const Decay& decay, const Pointers& at, int64_t n) {
    update(step, decay, at, n, States{});
  }

  // Of the parameter, and of what the rule measures.
  using Squares = std::pair<double, double>;
  template <class Measure>
  static Squares measure(const Measure& measure, const Decay& decay, const Pointers& at,
                         int64_t n) {
    return UpdateElements::measure(measure, decay, at, n, States{});
  }

 private:
  // By value: as locals the coefficients stay in registers, a reference might alias the stores.
  template <size_t... K>
  static void update(const Step step, const Decay decay, const Pointers at, int64_t n,
                     std::index_sequence<K...>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) step(at.p[i], decay(at.g[i], at.p[i]), at.s[K][i]...);
  }

  template <class Measure, size_t... K>
  static Squares measure(const Measure measure, const Decay decay, const Pointers at, int64_t n,
                         std::index_sequence<K...>) {
    double a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t i = 0; i < n; ++i) {
      const double x = at.p[i];
      const double y = measure(at.p[i], decay(at.g[i], at.p[i]), at.s[K][i]...);
      a += x * x;
      b += y * y;
    }
    return {a, b};
  }
};

}  // namespace fleetx::ops
