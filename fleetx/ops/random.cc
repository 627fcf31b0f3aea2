// Random tensors: element i is a pure function of (seed, name of out, step, i), so neither threads
// nor workers change it (see base/rng.h). seed=0 means the program's seed; with the input `step`
// every step draws anew.
//   uniform             in [low, high)
//   gaussian            mean + std * normal
//   truncated_gaussian  the same, but only values within 2 std
//   randint             integers in [low, high)
// f64 results carry no more randomness than f32 ones.
#include <array>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/math.h"

namespace fleetx::ops {
namespace {

// Without the unsigned conversion that only AVX-512 has; rounds once.
float to_float(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 16)) * 65536.0f +
         static_cast<float>(static_cast<int32_t>(bits & 0xffffu));
}

struct Uniform {
  static constexpr int kWords = 1;  // of the random stream, per element
  explicit Uniform(const kernel::Prepare& p)
      : low(p.attr<float>("low")),
        width(static_cast<float>(p.attr<double>("high") - p.attr<double>("low"))) {}
  float operator()(const uint32_t* word) const {
    return low + width * (static_cast<float>(static_cast<int32_t>(word[0] >> 8)) * 0x1p-24f);
  }
  float low, width;
};

// Box-Muller, as Philox::normal.
struct Gaussian {
  static constexpr int kWords = 2;
  explicit Gaussian(const kernel::Prepare& p)
      : mean(p.attr<float>("mean")), std(p.attr<float>("std")) {}
  float operator()(const uint32_t* word) const {
    const float u = (to_float(word[0]) + 1.0f) * 0x1p-32f;
    const math::detail::Split s = math::detail::split(u);
    // Next to 1 what is missing to 1 is known much better than u.
    const float f = s.e == 0.0f ? to_float(~word[0]) * -0x1p-32f : s.m - 1.0f;
    const float squared = -2.0f * math::detail::log_parts(f, s.e);
    const float radius = std::sqrt(squared > 0.0f ? squared : 0.0f);
    // cos(2 pi w / 2^32) = sin(pi v): halves of the circle are folded in integers, without
    // rounding.
    const auto w = static_cast<int32_t>(word[1]);
    const int32_t folded = (1 << 30) - (w < 0 ? -(w + 1) : w);
    const float v = static_cast<float>(folded) * 0x1p-31f, z = v * v;
    float q = -0.00702216336f;
    q = q * z + 0.0820464787f;
    q = q * z - 0.59925133f;
    q = q * z + 2.55016324f;
    q = q * z - 5.16771276f;
    q = q * z + 3.14159265f;
    return mean + std * radius * (v * q);
  }
  float mean, std;
};

// The inverse of the distribution function, a rational fit in 1 - v^2 for v in [-1, 1].
struct TruncatedGaussian {
  static constexpr int kWords = 1;
  explicit TruncatedGaussian(const kernel::Prepare& p)
      : mean(p.attr<float>("mean")), std(p.attr<float>("std")) {}
  float operator()(const uint32_t* word) const {
    const float v = static_cast<float>(static_cast<int32_t>(word[0])) * 0x1p-31f;
    const float w = (1.0f - v) * (1.0f + v);
    float p = 4.38451363f;
    p = p * w + 54.2421822f;
    p = p * w + 74.4910191f;
    p = p * w + 24.2563925f;
    p = p * w + 1.99999986f;
    float q = 10.7060116f;
    q = q * w + 55.2538836f;
    q = q * w + 52.4259413f;
    q = q * w + 13.838015f;
    q = q * w + 1.0f;
    const float x = v * p / q;
    return mean + std * (x < -2.0f ? -2.0f : x > 2.0f ? 2.0f : x);
  }
  float mean, std;
};

struct Randint {
  static constexpr int kWords = 1;
  explicit Randint(const kernel::Prepare& p)
      : low(p.attr<int64_t>("low")), range(static_cast<uint64_t>(p.attr<int64_t>("high") - low)) {}
  int64_t operator()(const uint32_t* word) const {
    return low + static_cast<int64_t>((word[0] * range) >> 32);
  }
  int64_t low;
  uint64_t range;
};

template <class Draw, class T>
class RandomKernel final : public kernel::Kernel {
 public:
  explicit RandomKernel(kernel::Prepare& p)
      : draw_(p),
        stream_(p.random_stream()),
        step_(p.input("step")),
        out_(p.output("out")),
        n_(p.out("out").numel()) {}

  void run(const kernel::Run& r) override {
    const int64_t* step = r.in<int64_t>(step_);
    const Philox random = stream_.at(step ? static_cast<uint64_t>(*step) : 0);
    const Draw draw = draw_;
    T* out = r.out<T>(out_);
    const int64_t total = n_;
    parallel_for((total + kChunk - 1) / kChunk, 64, [=](int64_t begin, int64_t end) {
      vectorized([=] {
        std::array<uint32_t, kChunk * Draw::kWords> words;
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          const int64_t at = chunk * kChunk, n = std::min(kChunk, total - at);
          random.blocks(static_cast<uint64_t>(at) * Draw::kWords / 4, kChunk * Draw::kWords / 4,
                        words.data());
          for (int64_t i = 0; i < n; ++i)
            out[at + i] = static_cast<T>(draw(words.data() + i * Draw::kWords));
        }
      });
    });
  }

 private:
  static constexpr int64_t kChunk = 256;
  Draw draw_;
  kernel::RandomStream stream_;
  kernel::Slot step_, out_;
  int64_t n_;
};

void infer(ir::Infer& c) {
  const auto shape = c.attr<Shape>("shape");
  for (const int64_t d : shape)
    c.check(d >= 0, "attribute 'shape' is ", shape, "; every dimension must be known");
  if (c.has("step"))
    c.check(c.in("step").dtype == i64 && c.in("step").shape.numel() == 1, c.show("step"),
            "; expected i64[1]");
  c.out("out") = {c.attr<DType>("dtype"), shape};
}

void infer_float(ir::Infer& c) {
  infer(c);
  const DType dtype = c.out("out").dtype;
  c.check(dtype == f32 || dtype == f64, "dtype is ", dtype, "; expected f32 or f64");
}

void infer_randint(ir::Infer& c) {
  infer(c);
  const DType dtype = c.out("out").dtype;
  c.check(dtype == i32 || dtype == i64, "dtype is ", dtype, "; expected i32 or i64");
  const auto low = c.attr<int64_t>("low"), high = c.attr<int64_t>("high");
  c.check(low < high && static_cast<uint64_t>(high) - static_cast<uint64_t>(low) <= 1ull << 32,
          "low is ", low, ", high is ", high, "; low must be the smaller one, by at most 2^32");
  c.check(dtype == i64 || (low >= INT32_MIN && high - 1 <= INT32_MAX), "[", low, ", ", high,
          ") does not fit in i32");
}

template <class Draw, class Small, class Large>
std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  if (p.out("out").dtype == DTypeOf<Small>::value)
    return std::make_unique<RandomKernel<Draw, Small>>(p);
  return std::make_unique<RandomKernel<Draw, Large>>(p);
}

ir::OpRegistrar random_op(const char* type, const char* dtype) {
  ir::OpRegistrar op(type);
  op.input("step", ir::Arity::kOptional).output("out");
  op.required_attr("shape", ir::AttrType::kInts).attr("dtype", dtype).attr("seed", 0);
  op.infer(infer_float).random();
  return op;
}

const ir::RegisterOp ops[] = {
    random_op("uniform", "f32")
        .attr("low", -1.0)
        .attr("high", 1.0)
        .kernel(make<Uniform, float, double>),
    random_op("gaussian", "f32")
        .attr("mean", 0.0)
        .attr("std", 1.0)
        .kernel(make<Gaussian, float, double>),
    random_op("truncated_gaussian", "f32")
        .attr("mean", 0.0)
        .attr("std", 1.0)
        .kernel(make<TruncatedGaussian, float, double>),
    random_op("randint", "i64")
        .attr("low", 0)
        .required_attr("high", ir::AttrType::kInt)
        .infer(infer_randint)
        .kernel(make<Randint, int32_t, int64_t>),
};

}  // namespace
}  // namespace fleetx::ops
