// cross_entropy: the loss of probabilities x over the classes on one axis:
//   hard labels  out = -log x[label];        dx[label] = -dout / x[label]
//                0 where the label is ignore_index
//   soft labels  out = -sum(label * log x);  dx = -dout * label / x
// out has the shape of x with 1 on the axis. For shapes of labels see labels.h. A probability below
// kTiny counts as kTiny, so that loss and gradient stay finite. softmax_cross_entropy takes logits
// and is more exact.
#include <cmath>
#include <limits>

#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/labels.h"

namespace fleetx::ops {
namespace {

constexpr float kTiny = std::numeric_limits<float>::min();

void infer(ir::Infer& c) {
  ops::check_labels(c, "x");
  c.out("out") = {DType::kF32, ops::one_per_position(c, "x")};
}

void grad(ir::Grad& g) {
  ops::refuse_label_gradient(g);
  g.set("x", g.op("cross_entropy_grad",
                  {{"x", g.in("x")}, {"label", g.in("label")}, {"dout", g.dout("out")}}, g.attrs(),
                  {{"dx", g.dx("x")}}));
}

void infer_grad(ir::Infer& c) { ops::infer_loss_grad(c, "x"); }

class Forward final : public kernel::Kernel {
 public:
  explicit Forward(kernel::Prepare& p)
      : axis_(ops::class_axis(p, "x")), labels_(p, "x"), x_(p.input("x")), out_(p.output("out")) {}

  void run(const kernel::Run& r) override {
    const float *x = r.in<float>(x_), *soft = labels_.soft(r);
    float* out = r.out<float>(out_);
    const ops::Labels::View labels = labels_.checked(r);
    const int64_t inner = axis_.inner,
                  grain = soft ? std::max<int64_t>(1, 4096 / axis_.classes) : 4096;
    parallel_for(axis_.positions(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i / inner * axis_.classes * inner + i % inner;
        double loss = 0;
        if (soft) {
          for (int64_t c = 0; c < axis_.classes; ++c)
            loss -= static_cast<double>(soft[at + c * inner] *
                                        std::log(std::max(x[at + c * inner], kTiny)));
        } else if (labels[i] != labels_.ignored()) {
          loss = -std::log(std::max(x[at + labels[i] * inner], kTiny));
        }
        out[i] = static_cast<float>(loss);
      }
    });
  }

 private:
  ops::ClassAxis axis_;
  ops::Labels labels_;
  kernel::Slot x_, out_;
};

class Backward final : public kernel::Kernel {
 public:
  explicit Backward(kernel::Prepare& p)
      : axis_(ops::class_axis(p, "x")),
        labels_(p, "x"),
        x_(p.input("x")),
        dout_(p.input("dout")),
        dx_(p.output("dx")) {}

  void run(const kernel::Run& r) override {
    const float *x = r.in<float>(x_), *dout = r.in<float>(dout_), *soft = labels_.soft(r);
    float* dx = r.out<float>(dx_);
    const ops::Labels::View labels = labels_.checked(r);
    const int64_t inner = axis_.inner, block = axis_.classes * inner;
    parallel_for(axis_.outer, std::max<int64_t>(1, 4096 / block), [&](int64_t begin, int64_t end) {
      if (!soft) std::fill(dx + begin * block, dx + end * block, 0.0f);
      for (int64_t i = begin * inner; i < end * inner; ++i) {
        const int64_t first = i / inner * block + i % inner;
        if (soft) {
          for (int64_t at = first; at < first + block; at += inner)
            dx[at] = -dout[i] * soft[at] / std::max(x[at], kTiny);
        } else if (labels[i] != labels_.ignored()) {
          const int64_t at = first + labels[i] * inner;
          dx[at] = -dout[i] / std::max(x[at], kTiny);
        }
      }
    });
  }

 private:
  ops::ClassAxis axis_;
  ops::Labels labels_;
  kernel::Slot x_, dout_, dx_;
};

const ir::RegisterOp register_cross_entropy = ops::class_loss("cross_entropy")
                                                  .input("x")
                                                  .input("label")
                                                  .output("out")
                                                  .infer(infer)
                                                  .grad(grad)
                                                  .kernel<Forward>();

const ir::RegisterOp register_cross_entropy_grad = ops::class_loss("cross_entropy_grad")
                                                       .input("x")
                                                       .input("label")
                                                       .input("dout")
                                                       .output("dx")
                                                       .infer(infer_grad)
                                                       .kernel<Backward>();

}  // namespace
}  // namespace fleetx::ops
