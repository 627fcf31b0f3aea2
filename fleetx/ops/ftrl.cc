// ftrl (McMahan et al., 2013), with root(x) = x^-lr_power, which is the square root by default:
//   new = squared + g^2
//   linear += g - (root(new) - root(squared)) / lr * p
//   p = (shrink_l1 * sign(linear) - linear) / (root(new) / lr + 2 * shrink_l2)
//       if |linear| > shrink_l1, else 0
//   squared = new
// shrink_l1 and shrink_l2 belong to the method; both are raised by 1e-10, so that a weight without
// history does not divide by zero. l1 and l2 are the decay of every optimizer.
// For g, the lists and sparse gradients see optimizer.h.
#include "fleetx/ops/optimizer.h"

namespace fleetx {
namespace {

struct SquareRoot {
  float operator()(float x) const { return std::sqrt(x); }
};
struct Power {
  float exponent;
  float operator()(float x) const { return std::pow(x, exponent); }
};

template <class Root>
struct Ftrl {
  static constexpr std::array<std::string_view, 2> kStates{"squared", "linear"};
  static constexpr bool kPowers = false, kNorms = false;

  Ftrl(const kernel::Prepare& p, size_t)
      : l1(p.attr<float>("shrink_l1") + 1e-10f), l2(p.attr<float>("shrink_l2") + 1e-10f) {
    if constexpr (std::is_same_v<Root, Power>) root = {-p.attr<float>("lr_power")};
  }

  struct Step {
    float lr, l1, l2;
    Root root;
    void operator()(float& p, float g, float& squared, float& linear) const {
      const float sum = squared + g * g;
      const float rooted = root(sum);
      const float z = linear + g - (rooted - root(squared)) / lr * p;
      squared = sum;
      linear = z;
      const float shrunk = ((z > 0 ? l1 : -l1) - z) / (rooted / lr + 2 * l2);
      p = std::abs(z) > l1 ? shrunk : 0.0f;
    }
  };
  Step step(const ops::StepArgs& a) const { return {a.lr, l1, l2, root}; }

  float l1, l2;
  Root root{};
};

void infer(ir::Infer& c) {
  ops::infer_update(c);
  for (const char* attr : {"shrink_l1", "shrink_l2"})
    c.check(c.attr<double>(attr) >= 0, attr, " must not be negative, got ", c.attr<double>(attr));
  c.check(c.attr<double>("lr_power") <= 0, "lr_power must not be positive, got ",
          c.attr<double>("lr_power"));
}

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  if (p.attr<double>("lr_power") == -0.5)
    return std::make_unique<ops::UpdateKernel<Ftrl<SquareRoot>>>(p);
  return std::make_unique<ops::UpdateKernel<Ftrl<Power>>>(p);
}

const ir::RegisterOp register_ftrl = ops::optimizer_op("ftrl", {"squared", "linear"})
                                         .attr("shrink_l1", 0.0)
                                         .attr("shrink_l2", 0.0)
                                         .attr("lr_power", -0.5)
                                         .infer(infer)
                                         .kernel(make);

}  // namespace
}  // namespace fleetx
