#include "fleetx/ps/update.h"

#include "fleetx/base/simd.h"

namespace fleetx::ps {
namespace {

class AddRule final : public UpdateRule {
 public:
  std::string text() const override { return "add"; }

  void update(const Batch& b) const override {
    for (size_t r = 0; r < b.records.size(); ++r)
      vectorized([value = b.records[r], gradient = b.gradients[r], n = b.width] {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) value[i] += gradient[i];
      });
  }
};

}  // namespace

UpdateRulePtr add_rule() {
  static const UpdateRulePtr rule = std::make_shared<AddRule>();
  return rule;
}

}  // namespace fleetx::ps
