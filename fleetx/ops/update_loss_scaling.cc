// update_loss_scaling: the factor of the loss in mixed precision, after a step whose gradients were
// finite or not. All state is [1]: scale f32, good and bad i32.
//   finite:  bad = 0, good += 1; at incr_every_n_steps: scale *= incr_ratio (while that is finite),
//            good = 0
//   else:    good = 0, bad += 1; at decr_every_n_nan_or_inf: scale *= decr_ratio, but not below 1,
//            bad = 0
// dynamic=false: the scale stays, the counters count. `first` is the place of the first op of
// backward whose gradient was not finite in the attribute `makers`, f32[1] `loss` what it began
// with. Where the scale cannot be lowered and kPatience steps in a row are bad, training stands
// still: a warning says so, once, with that op. No gradient.
#include <cmath>

#include "fleetx/base/log.h"
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

constexpr int kPatience = 1000;

void infer(ir::Infer& c) {
  const auto one = [&](const char* slot, DType dtype) {
    c.check(c.in(slot).dtype == dtype && c.in(slot).shape == Shape{1}, c.show(slot), "; expected ",
            dtype, "[1]");
  };
  one("finite", boolean);
  one("scale", f32);
  one("good", i32);
  one("bad", i32);
  if (c.has("first")) one("first", i64);
  if (c.has("loss")) one("loss", f32);
  for (const char* number : {"incr_every_n_steps", "decr_every_n_nan_or_inf"})
    c.check(c.attr<int64_t>(number) > 0, number, " is ", c.attr<int64_t>(number),
            "; must be positive");
  const auto up = c.attr<double>("incr_ratio"), down = c.attr<double>("decr_ratio");
  c.check(up > 1, "incr_ratio is ", up, "; must be greater than 1");
  c.check(down > 0 && down < 1, "decr_ratio is ", down, "; must be between 0 and 1");
  c.out("scale_out") = c.in("scale");
  c.out("good_out") = c.in("good");
  c.out("bad_out") = c.in("bad");
}

class UpdateLossScalingKernel final : public kernel::Kernel {
 public:
  explicit UpdateLossScalingKernel(kernel::Prepare& p)
      : makers_(p.attr<ir::Strings>("makers")),
        dynamic_(p.attr<bool>("dynamic")),
        incr_every_(p.attr<int>("incr_every_n_steps")),
        decr_every_(p.attr<int>("decr_every_n_nan_or_inf")),
        incr_ratio_(static_cast<float>(p.attr<double>("incr_ratio"))),
        decr_ratio_(static_cast<float>(p.attr<double>("decr_ratio"))),
        finite_(p.input("finite")),
        scale_(p.input("scale")),
        good_(p.input("good")),
        bad_(p.input("bad")),
        first_(p.input("first")),
        loss_(p.input("loss")),
        scale_out_(p.output("scale_out")),
        good_out_(p.output("good_out")),
        bad_out_(p.output("bad_out")) {}

  void run(const kernel::Run& r) override {
    const bool finite = *r.in<bool>(finite_);
    float scale = *r.in<float>(scale_);
    int32_t good = finite ? *r.in<int32_t>(good_) + 1 : 0;
    int32_t bad = finite ? 0 : *r.in<int32_t>(bad_) + 1;
    watch(r, finite, scale);
    if (dynamic_ && good >= incr_every_) {
      const float next = scale * incr_ratio_;
      if (std::isfinite(next)) scale = next;
      good = 0;
    }
    if (dynamic_ && bad >= decr_every_) {
      // A user's scale below 1 stays: the floor lowers nothing and raises nothing.
      scale = std::min(scale, std::max(1.0f, scale * decr_ratio_));
      bad = 0;
    }
    *r.out<float>(scale_out_) = scale;
    *r.out<int32_t>(good_out_) = good;
    *r.out<int32_t>(bad_out_) = bad;
  }

 private:
  void watch(const kernel::Run& r, bool finite, float scale) {
    const bool stuck = !finite && (!dynamic_ || scale <= 1);
    in_a_row_ = stuck ? in_a_row_ + 1 : 0;
    if (in_a_row_ != kPatience || warned_) return;
    warned_ = true;
    const int64_t first = first_ ? *r.in<int64_t>(first_) : -1;
    const bool known = first >= 0 && first < static_cast<int64_t>(makers_.size());
    // Whatever overflows in forward, backward begins with it.
    const bool in_forward = loss_ && !std::isfinite(*r.in<float>(loss_));
    log::warning(
        "amp", "no update for ", kPatience, " steps: gradients are not finite, and the ",
        "loss scale is ", scale, dynamic_ ? ", its floor" : " and constant", ". ",
        in_forward ? str("It begins in forward, as the loss is ", *r.in<float>(loss_),
                         ": FLEETX_CHECK_FINITE=1 stops at the op that overflows and names it. ")
        : known    ? str("The first op of backward that overflows is ",
                         makers_[static_cast<size_t>(first)], "; FLEETX_CHECK_FINITE=1 stops at it. ")
                   : "",
        "Put that op into custom_black_list (it then computes in f32), lower the learning "
        "rate, or look for NaN in the data");
  }

  ir::Strings makers_;
  bool dynamic_;
  int incr_every_, decr_every_;
  float incr_ratio_, decr_ratio_;
  kernel::Slot finite_, scale_, good_, bad_, first_, loss_, scale_out_, good_out_, bad_out_;
  int in_a_row_ = 0;
  bool warned_ = false;
};

FLEETX_OP(update_loss_scaling)
    .input("finite")
    .input("scale")
    .input("good")
    .input("bad")
    .input("first", ir::Arity::kOptional)
    .input("loss", ir::Arity::kOptional)
    .output("scale_out")
    .output("good_out")
    .output("bad_out")
    .attr("dynamic", true)
    .attr("incr_every_n_steps", 1000)
    .attr("decr_every_n_nan_or_inf", 2)
    .attr("incr_ratio", 2.0)
    .attr("decr_ratio", 0.8)
    .attr("makers", ir::Strings{})
    .infer(infer)
    .kernel<UpdateLossScalingKernel>()
    .in_place("scale_out", "scale")
    .in_place("good_out", "good")
    .in_place("bad_out", "bad");

}  // namespace
}  // namespace fleetx::ops
