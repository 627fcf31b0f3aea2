// adaptive_k_steps: after how many steps workers that train on their own average their parameters
// again (strategies/adaptive_localsgd.cc). All are single numbers:
//   step = 1:            loss0 = loss, lr0 = lr
//   step > begin_step:   k = ceil(sqrt(init_k_steps * lr0 * loss / (lr * loss0))), within [1, 16]
// Where that is no number (a divisor is 0, a loss is negative or not finite), k stays as it is. No
// gradient.
#include <algorithm>
#include <cmath>

#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

constexpr double kMostSteps = 16;

void infer(ir::Infer& c) {
  for (const char* slot : {"k", "step"})
    c.check(c.in(slot).dtype == i64 && c.in(slot).shape.numel() == 1, c.show(slot),
            "; expected i64[1]");
  for (const char* slot : {"loss0", "lr0", "loss", "lr"})
    c.check(c.in(slot).dtype == f32 && c.in(slot).shape.numel() == 1, c.show(slot),
            "; expected f32[1]");
  c.check(c.attr<int64_t>("init_k_steps") >= 1, "init_k_steps is ", c.attr<int64_t>("init_k_steps"),
          "; must be at least 1");
  c.out("k_out") = c.in("k");
  c.out("loss0_out") = c.in("loss0");
  c.out("lr0_out") = c.in("lr0");
}

class AdaptiveKSteps final : public kernel::Kernel {
 public:
  explicit AdaptiveKSteps(kernel::Prepare& p)
      : k_(p.input("k")),
        loss0_(p.input("loss0")),
        lr0_(p.input("lr0")),
        loss_(p.input("loss")),
        lr_(p.input("lr")),
        step_(p.input("step")),
        k_out_(p.output("k_out")),
        loss0_out_(p.output("loss0_out")),
        lr0_out_(p.output("lr0_out")),
        init_(p.attr<int64_t>("init_k_steps")),
        begin_(p.attr<int64_t>("begin_step")) {}

  void run(const kernel::Run& r) override {
    const int64_t step = *r.in<int64_t>(step_);
    const float loss = *r.in<float>(loss_), lr = *r.in<float>(lr_);
    const float loss0 = step == 1 ? loss : *r.in<float>(loss0_);
    const float lr0 = step == 1 ? lr : *r.in<float>(lr0_);
    int64_t k = *r.in<int64_t>(k_);
    if (step > begin_) k = next(k, loss, loss0, lr, lr0);
    *r.out<int64_t>(k_out_) = k;
    *r.out<float>(loss0_out_) = loss0;
    *r.out<float>(lr0_out_) = lr0;
  }

 private:
  int64_t next(int64_t k, double loss, double loss0, double lr, double lr0) const {
    const double steps =
        std::ceil(std::sqrt(lr0 * loss / (lr * loss0) * static_cast<double>(init_)));
    if (!std::isfinite(steps)) return k;
    return static_cast<int64_t>(std::clamp(steps, 1.0, kMostSteps));
  }

  kernel::Slot k_, loss0_, lr0_, loss_, lr_, step_, k_out_, loss0_out_, lr0_out_;
  int64_t init_, begin_;
};

FLEETX_OP(adaptive_k_steps)
    .input("k")
    .input("loss0")
    .input("lr0")
    .input("loss")
    .input("lr")
    .input("step")
    .output("k_out")
    .output("loss0_out")
    .output("lr0_out")
    .required_attr("init_k_steps", ir::AttrType::kInt)
    .required_attr("begin_step", ir::AttrType::kInt)
    .infer(infer)
    .kernel<AdaptiveKSteps>()
    .in_place("k_out", "k")
    .in_place("loss0_out", "loss0")
    .in_place("lr0_out", "lr0");

}  // namespace
}  // namespace fleetx::ops
