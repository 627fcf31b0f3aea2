// lars_momentum (You et al., 2017): a learning rate per parameter from the norms of it and its
// gradient.
//   local_lr = lr * lars_coeff * |p| / (|g| + wd * |p| + epsilon)   if wd, |p| and |g| are not 0
//              lr                                                  otherwise
//   v = mu * v + local_lr * (g + wd * p);  p -= v
// wd is lars_weight_decay, or 0 where with_decay is 0. Dense gradients only.
// For g and the lists see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct Lars {
  static constexpr std::array<std::string_view, 1> kStates{"velocity"};
  static constexpr bool kPowers = false, kNorms = true;

  Lars(const kernel::Prepare& p, size_t i)
      : mu(p.attr<float>("mu")),
        coeff(p.attr<double>("lars_coeff")),
        decay(ops::per_parameter(p, "with_decay", i, 1.0) != 0 ? p.attr<double>("lars_weight_decay")
                                                               : 0.0),
        epsilon(p.attr<double>("epsilon")) {}

  struct Measure {
    float operator()(float, float g, float&) const { return g; }
  };
  Measure measure(const ops::StepArgs&) const { return {}; }

  struct Step {
    float mu, lr, decay;
    void operator()(float& p, float g, float& velocity) const {
      const float v = mu * velocity + lr * (g + decay * p);
      velocity = v;
      p -= v;
    }
  };
  Step step(const ops::StepArgs& a) const {
    double lr = a.lr;
    if (decay > 0 && a.norm_param > 0 && a.norm > 0)
      lr *= coeff * a.norm_param / (a.norm + decay * a.norm_param + epsilon);
    return {mu, static_cast<float>(lr), static_cast<float>(decay)};
  }

  float mu;
  double coeff, decay, epsilon;
};

void infer(ir::Infer& c) {
  ops::infer_update(c);
  ops::check_dense(c);
}

const ir::RegisterOp register_lars_momentum = ops::optimizer_op("lars_momentum", {"velocity"})
                                                  .attr("mu", 0.9)
                                                  .attr("lars_coeff", 0.001)
                                                  .attr("lars_weight_decay", 0.0005)
                                                  .attr("epsilon", 0.0)
                                                  .attr("with_decay", ir::Floats{})
                                                  .infer(infer)
                                                  .kernel<ops::UpdateKernel<Lars>>();

}  // namespace
}  // namespace fleetx
