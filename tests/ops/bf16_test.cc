// Products and convolutions of bf16 by oneDNN, as CPUs with instructions for it
// compute them, against the same in f32. With AVX-512 alone oneDNN emulates
// those instructions, so the code around them is tested on such CPUs, too.
#include "fleetx/ops/lib/bf16.h"

#include <gtest/gtest.h>

#include "fleetx/base/cpu.h"
#include "tests/ops/convolve.h"

namespace fleetx::testing {
namespace {

class Pretend {
 public:
  Pretend() { ops::pretend_to_multiply_bf16(true); }
  ~Pretend() { ops::pretend_to_multiply_bf16(false); }
};

struct Network {
  std::string op;
  Shape x, w;
  DType weights;  // of w and bias
  ir::Attrs attrs = {};
};

// out, dx, dw, dbias, in f32; how many kernels convert to f32.
Tensors train(const Network& n, DType dtype, int* converted) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const DType weights = dtype == f32 ? f32 : n.weights;
  const auto cast = [&](const ir::Var& v, DType to) {
    return v.dtype() == to ? v : ir::Var(b.op("cast", {{"x", v}}, {{"dtype", to}}));
  };
  const bool bias = n.op != "matmul";
  const int64_t outputs = n.op == "conv2d" ? n.w[0] : n.w.back();
  ir::Var x = b.data("x", f32, n.x), w = b.data("w", f32, n.w), v = b.data("bias", f32, {outputs});
  std::vector<ir::Var> inputs{x, w};
  if (bias) inputs.push_back(v);
  for (ir::Var& input : inputs) input.stop_gradient(false);
  std::vector<ir::Arg> args{{"x", cast(x, dtype)}, {bias ? "w" : "y", cast(w, weights)}};
  if (bias) args.emplace_back("bias", cast(v, weights));
  const ir::Var out = cast(b.op(n.op, args, n.attrs), f32);
  const ir::Var seed = b.data("seed", f32, out.shape());
  ir::Names fetch{out.name()};
  for (const ir::Var& g : autograd::gradients({out}, inputs, {seed})) fetch.push_back(g.name());
  runtime::Scope scope;
  runtime::Executor exe;
  runtime::Feeds feeds{
      {"x", random(n.x, 1)}, {"w", random(n.w, 2)}, {"seed", random(out.shape(), 4)}};
  if (bias) feeds.emplace_back("bias", random({outputs}, 3));
  for (const runtime::Step& step : exe.plan(main, scope, feeds, fetch).steps())
    *converted += step.kernel->implementation().find("converted") != std::string_view::npos ||
                  step.kernel->implementation().find("strassen") != std::string_view::npos;
  return exe.run(main, scope, feeds, fetch);
}

TEST(Bf16, ProductsAndConvolutionsEqualThoseInF32) {
  if (cpu::best_isa() < cpu::Isa::kAvx512) GTEST_SKIP() << "oneDNN has no bf16 here";
  const Network networks[] = {
      {"fc", {64, 96}, {96, 80}, f32},
      {"fc", {64, 96}, {96, 80}, bf16},
      {"fc", {512, 520}, {520, 528}, f32},
      {"fc", {4, 20, 30}, {30, 7}, f32, {{"num_flatten_dims", 2}, {"act", "gelu"}}},
      {"matmul", {64, 96}, {96, 80}, bf16},
      {"matmul", {3, 2, 20, 30}, {3, 2, 40, 30}, bf16, {{"transpose_y", true}, {"alpha", 0.5}}},
      {"conv2d", {2, 32, 12, 12}, {48, 32, 3, 3}, f32, {{"padding", ir::Ints{1, 1}}}},
      {"conv2d", {2, 32, 12, 12}, {48, 32, 3, 3}, bf16, {{"stride", ir::Ints{2, 2}}}},
      {"conv2d", {2, 64, 9, 9}, {64, 64, 1, 1}, f32},
  };
  for (const Network& n : networks) {
    SCOPED_TRACE(str(n.op, n.x, n.w, n.weights));
    int before = 0, now = 0;
    const Tensors want = train(n, f32, &before);
    const Pretend pretend;
    const Tensors got = train(n, bf16, &now);
    EXPECT_EQ(now, 0) << "kernels that convert to f32";
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(distance(got[i], want[i]), 1e-2) << i;
  }
}

// Layers that read the same: dx of all of them, and of what else reaches x, is
// added up in f32.
TEST(Bf16, GroupsOfLayersEqualThoseInF32) {
  if (cpu::best_isa() < cpu::Isa::kAvx512) GTEST_SKIP() << "oneDNN has no bf16 here";
  const auto run = [](DType dtype) {
    const auto in = [&](const Shape& shape, uint64_t salt) {
      Tensor x = random(shape, salt);
      if (dtype == f32) return x;
      Tensor out(dtype, shape);
      for (size_t i = 0; i < x.data<float>().size(); ++i)
        out.data<BFloat16>()[i] = x.data<float>()[i];
      return out;
    };
    return run_op("fc_group_grad",
                  {.inputs = {{"x", in({64, 48}, 1)},
                              {"w", Tensors{random({48, 32}, 2), random({48, 32}, 3)}},
                              {"dout", Tensors{in({64, 32}, 4), in({64, 32}, 5)}},
                              {"addend", in({64, 48}, 6)}},
                   .outputs = {{"dx", 1}, {"dw", 2}, {"dbias", 2}}});
  };
  const Tensors want = run(f32);
  const Pretend pretend;
  const Tensors got = run(bf16);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    Tensor wide(f32, got[i].shape());
    for (size_t k = 0; k < wide.data<float>().size(); ++k)
      wide.data<float>()[k] =
          got[i].dtype() == f32 ? got[i].data<float>()[k] : float{got[i].data<BFloat16>()[k]};
    EXPECT_LT(distance(wide, want[i]), 1e-2) << i;
  }
}

}  // namespace
}  // namespace fleetx::testing
