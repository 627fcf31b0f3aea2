// dropout: each element is kept with probability 1 - p; mask (u8) says which.
//   mode="upscale_in_train"     training: out = x * mask / (1 - p),   test: out = x
//   mode="downscale_in_infer"   training: out = x * mask,             test: out = x * (1 - p)
// Element i is kept or not by number place * numel + i of the random stream (seed, name of out,
// step), where place is that of this rank among those that share the batch along `axes` of the
// mesh: ranks with equal shares of a batch draw what one draws for the whole of it, and a
// recomputed dropout draws the same again. In a test mask is all ones.
//
// dropout_grad: dx = dout * mask (* 1 / (1 - p)); x is not kept.
#include <array>
#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

bool upscales(const ir::Op& op) { return op.attr<std::string>("mode") == "upscale_in_train"; }

void infer(ir::Infer& c) {
  const ir::TensorType& x = c.in("x");
  c.check(is_float(x.dtype), c.show("x"), "; expected a float");
  const auto p = c.attr<double>("p");
  c.check(p >= 0 && p <= 1, "p is ", p, "; must be between 0 and 1");
  const auto mode = c.attr<std::string>("mode");
  c.check(mode == "upscale_in_train" || mode == "downscale_in_infer", "mode is \"", mode,
          "\"; expected \"upscale_in_train\" or \"downscale_in_infer\"");
  if (c.has("step"))
    c.check(c.in("step").dtype == i64 && c.in("step").shape.numel() == 1, c.show("step"),
            "; expected i64[1]");
  c.out("out") = x;
  c.out("mask") = {u8, x.shape};
}

void infer_grad(ir::Infer& c) {
  c.check(c.in("mask").dtype == u8 && c.in("mask").shape == c.in("dout").shape, c.show("mask"),
          ", but ", c.show("dout"));
  c.out("dx") = c.in("dout");
}

void grad(ir::Grad& g) {
  const auto p = g.attr<double>("p");
  if (g.attr<bool>("is_test")) {
    g.set("x", g.op("scale", {{"x", g.dout("out")}}, {{"scale", upscales(g.op()) ? 1.0 : 1 - p}},
                    {{"out", g.dx("x")}}));
    return;
  }
  g.set("x", g.op("dropout_grad", {{"mask", g.out("mask")}, {"dout", g.dout("out")}},
                  {{"p", p}, {"mode", g.attr<std::string>("mode")}}, {{"dx", g.dx("x")}}));
}

// Where p is 1 nothing is kept, whatever the factor.
double kept_scale(const kernel::Prepare& p) {
  const auto drop = p.attr<double>("p");
  return upscales(p.op()) && drop < 1 ? 1 / (1 - drop) : 1.0;
}

// 16-bit floats are multiplied in f32.
template <class S>
using Computed = std::conditional_t<sizeof(S) == 2, float, S>;

template <class S>
class DropoutKernel final : public kernel::Kernel {
 public:
  explicit DropoutKernel(kernel::Prepare& p)
      : stream_(p.random_stream()),
        // 24 random bits below this drop the element.
        threshold_(static_cast<int32_t>(std::lround(p.attr<double>("p") * 0x1p24))),
        scale_(kept_scale(p)),
        first_(
            static_cast<uint64_t>(p.place_along(p.attr<ir::Strings>("axes")) * p.in("x").numel())),
        x_(p.input("x")),
        step_(p.input("step")),
        out_(p.output("out")),
        mask_(p.output("mask")),
        n_(p.in("x").numel()) {}

  void run(const kernel::Run& r) override {
    const int64_t* step = r.in<int64_t>(step_);
    const Philox random = stream_.at(step ? static_cast<uint64_t>(*step) : 0);
    using T = Computed<S>;
    const S* x = r.in<S>(x_);
    S* out = r.out<S>(out_);
    uint8_t* mask = r.out<uint8_t>(mask_);
    const auto scale = static_cast<T>(scale_);
    const int32_t threshold = threshold_;
    const uint64_t first = first_;
    parallel_for(n_, 1 << 14, [=](int64_t begin, int64_t end) {
      vectorized([=] {
        std::array<uint32_t, kChunk + 4> words;
        for (int64_t at = begin; at < end; at += kChunk) {
          const int64_t n = std::min(kChunk, end - at);
          const uint64_t index = first + static_cast<uint64_t>(at), skip = index % 4;
          random.blocks(index / 4, kChunk / 4 + 1, words.data());
          // Bytes may alias anything, the captured variables too: copies of them stay in registers.
          const uint32_t* word = words.data() + skip;
          const S* from = x + at;
          S* to = out + at;
          uint8_t* flag = mask + at;
          const int32_t limit = threshold;
          const T factor = scale;
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) {
            const bool keep = static_cast<int32_t>(word[i] >> 8) >= limit;
            const T value = from[i] * factor;
            to[i] = static_cast<S>(keep ? value : T{0});
            flag[i] = keep ? 1 : 0;
          }
        }
      });
    });
  }

 private:
  static constexpr int64_t kChunk = 508;  // 127 blocks, and one more where it starts inside a block
  kernel::RandomStream stream_;
  int32_t threshold_;
  double scale_;
  uint64_t first_;
  kernel::Slot x_, step_, out_, mask_;
  int64_t n_;
};

template <class S>
class TestKernel final : public kernel::Kernel {
 public:
  explicit TestKernel(kernel::Prepare& p)
      : scale_(upscales(p.op()) ? 1.0 : 1 - p.attr<double>("p")),
        x_(p.input("x")),
        out_(p.output("out")),
        mask_(p.output("mask")),
        n_(p.in("x").numel()) {
    p.input("step");
  }

  void run(const kernel::Run& r) override {
    using T = Computed<S>;
    const S* x = r.in<S>(x_);
    S* out = r.out<S>(out_);
    uint8_t* mask = r.out<uint8_t>(mask_);
    const auto scale = static_cast<T>(scale_);
    parallel_for(n_, 1 << 14, [=](int64_t begin, int64_t end) {
      vectorized([=] {
        std::fill(mask + begin, mask + end, uint8_t{1});
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = static_cast<S>(x[i] * scale);
      });
    });
  }

 private:
  double scale_;
  kernel::Slot x_, out_, mask_;
  int64_t n_;
};

template <class S>
class DropoutGradKernel final : public kernel::Kernel {
 public:
  explicit DropoutGradKernel(kernel::Prepare& p)
      : scale_(kept_scale(p)),
        mask_(p.input("mask")),
        dout_(p.input("dout")),
        dx_(p.output("dx")),
        n_(p.in("dout").numel()) {}

  void run(const kernel::Run& r) override {
    const uint8_t* mask = r.in<uint8_t>(mask_);
    using T = Computed<S>;
    const S* dout = r.in<S>(dout_);
    S* dx = r.out<S>(dx_);
    const auto scale = static_cast<T>(scale_);
    parallel_for(n_, 1 << 14, [=](int64_t begin, int64_t end) {
      vectorized([=] {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) {
          const T value = dout[i] * scale;
          dx[i] = static_cast<S>(mask[i] != 0 ? value : T{0});
        }
      });
    });
  }

 private:
  double scale_;
  kernel::Slot mask_, dout_, dx_;
  int64_t n_;
};

template <template <class> class K>
std::unique_ptr<kernel::Kernel> make_for(DType dtype, kernel::Prepare& p) {
  if (dtype == f64) return std::make_unique<K<double>>(p);
  return with_storage(dtype, [&](auto zero) -> std::unique_ptr<kernel::Kernel> {
    return std::make_unique<K<decltype(zero)>>(p);
  });
}

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  if (p.attr<bool>("is_test")) return make_for<TestKernel>(p.in("x").dtype, p);
  return make_for<DropoutKernel>(p.in("x").dtype, p);
}

std::unique_ptr<kernel::Kernel> make_grad(kernel::Prepare& p) {
  return make_for<DropoutGradKernel>(p.in("dout").dtype, p);
}

FLEETX_OP(dropout)
    .input("x")
    .input("step", ir::Arity::kOptional)
    .output("out")
    .output("mask")
    .attr("p", 0.5)
    .attr("is_test", false)
    .attr("mode", "upscale_in_train")
    .attr("seed", 0)
    .infer(infer)
    .grad(grad)
    .kernel(make)
    .draws_per_sample()
    .in_place("out", "x");

FLEETX_OP(dropout_grad)
    .input("mask")
    .input("dout")
    .output("dx")
    .attr("p", 0.5)
    .attr("mode", "upscale_in_train")
    .infer(infer_grad)
    .kernel(make_grad)
    .in_place("dx", "dout");

}  // namespace
}  // namespace fleetx::ops
