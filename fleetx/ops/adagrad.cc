// adagrad (Duchi et al., 2011): h += g^2;  p -= lr * g / (sqrt(h) + epsilon).
// For g, the lists and sparse gradients see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Adagrad {
  static constexpr std::array<std::string_view, 1> kStates{"moment"};
  static constexpr bool kPowers = false, kNorms = false;

  Adagrad(const kernel::Prepare& p, size_t) : epsilon(p.attr<float>("epsilon")) {}

  struct Step {
    float lr, epsilon;
    void operator()(float& p, float g, float& moment) const {
      const float h = moment + g * g;
      moment = h;
      p -= lr * g / (std::sqrt(h) + epsilon);
    }
  };
  Step step(const ops::StepArgs& a) const { return {a.lr, epsilon}; }

  float epsilon;
};

void infer(ir::Infer& c) {
  ops::infer_update(c);
  ops::check_positive(c, "epsilon");
}

const ir::RegisterOp register_adagrad = ops::optimizer_op("adagrad", {"moment"})
                                            .attr("epsilon", 1e-6)
                                            .infer(infer)
                                            .kernel<ops::UpdateKernel<Adagrad>>();

}  // namespace
}  // namespace fleetx
