// Update rules for measurements of tables alone: sgd and adagrad.
#pragma once

#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/ps/update.h"

namespace fleetx::bench {

class SgdRule final : public ps::UpdateRule {
 public:
  std::string text() const override { return "sgd"; }
  void update(const Batch& b) const override {
    vectorized([lr = b.lr, n = b.width, count = b.records.size(), records = b.records.data(),
                gradients = b.gradients.data()] {
      for (size_t r = 0; r < count; ++r) {
        float* const value = records[r];
        const float* const g = gradients[r];
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) value[i] -= lr * g[i];
      }
    });
  }
};

class AdagradRule final : public ps::UpdateRule {
 public:
  std::string text() const override { return "adagrad epsilon=1e-6"; }
  std::vector<float> states() const override { return {0}; }
  void update(const Batch& b) const override {
    vectorized([lr = b.lr, n = b.width, count = b.records.size(), records = b.records.data(),
                gradients = b.gradients.data()] {
      for (size_t r = 0; r < count; ++r) {
        float *const value = records[r], *const moment = value + n;
        const float* const g = gradients[r];
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          moment[i] += g[i] * g[i];
          value[i] -= lr * g[i] / (std::sqrt(moment[i]) + 1e-6f);
        }
      }
    });
  }
};

inline ps::UpdateRulePtr sgd_rule() { return std::make_shared<SgdRule>(); }
inline ps::UpdateRulePtr adagrad_rule() { return std::make_shared<AdagradRule>(); }

}  // namespace fleetx::bench
