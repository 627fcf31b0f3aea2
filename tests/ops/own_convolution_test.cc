// Convolutions by Winograd's algorithm and by products of tiles against those by the definition:
// the same program, planned with and without them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fleetx/autograd/backward.h"
#include "fleetx/base/cpu.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Shapes {
  Shape x, w;
  std::string act = {};
};

// out, dx, dw, dbias; counts the kernels with `name` in that of their implementation.
Tensors convolve(const Shapes& s, const std::set<std::string>& skip, std::string_view name,
                 int* used) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  runtime::Scope scope;
  const ir::Var x = b.data("x", f32, s.x), w = b.parameter({.name = "w", .shape = s.w});
  const ir::Var bias = b.parameter({.name = "bias", .shape = {s.w[0]}});
  scope.set("w", random(s.w, 2));
  scope.set("bias", random({s.w[0]}, 3));
  const ir::Var out = b.op("conv2d", {{"x", x}, {"w", w}, {"bias", bias}},
                           {{"padding", ir::Ints{s.w[2] / 2, s.w[3] / 2}}, {"act", s.act}});
  const ir::Var seed = b.data("seed", f32, out.shape());
  ir::Names fetch{out.name()};
  for (const ir::Var& g : autograd::gradients({out}, {x, w, bias}, {seed}))
    fetch.push_back(g.name());
  runtime::ExecutorOptions options;
  options.plan.skip = skip;
  runtime::Executor exe(options);
  const runtime::Feeds feeds{{"x", random(s.x, 1)}, {"seed", random(out.shape(), 4)}};
  for (const runtime::Step& step : exe.plan(main, scope, feeds, fetch).steps())
    *used += step.kernel->implementation().find(name) != std::string_view::npos;
  return exe.run(main, scope, feeds, fetch);
}

// |got - want| / |want|, Euclidean.
double distance(const Tensor& got, const Tensor& want) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < want.data<float>().size(); ++i) {
    const double w = want.data<float>()[i], d = got.data<float>()[i] - w;
    apart += d * d;
    size += w * w;
  }
  return std::sqrt(apart / size);
}

TEST(Winograd, EqualsTheDefinition) {
  const Shapes cases[] = {{{4, 32, 17, 18}, {48, 32, 3, 3}},  // tiles that hang over the border
                          {{2, 35, 28, 28}, {37, 35, 3, 3}},  // channels that no block divides
                          {{1, 64, 33, 64}, {32, 64, 3, 3}}};
  for (const Shapes& s : cases) {
    int used = 0, not_wanted = 0;
    const Tensors got = convolve(s, {}, "wino", &used),
                  want = convolve(s, {"winograd"}, "wino", &not_wanted);
    EXPECT_EQ(used, cpu::best_isa() >= cpu::Isa::kAvx2 ? 2 : 0) << s.x;
    EXPECT_EQ(not_wanted, 0) << "skipping 'winograd' must give the definition everywhere";
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LT(distance(got[i], want[i]), 1e-4) << "fetch " << i << " of " << s.x;
  }
}

TEST(Winograd, IsNotUsedWhereItDoesNotPay) {
  for (const Shapes& s : {Shapes{{1, 64, 16, 16}, {64, 64, 3, 3}},     // few tiles
                          Shapes{{8, 16, 32, 32}, {16, 16, 3, 3}}}) {  // few channels
    int used = 0;
    convolve(s, {}, "wino", &used);
    EXPECT_EQ(used, 0) << s.x;
  }
}

// Places of images that no tile divides, and an odd number of blocks of channels; inner dimensions
// that are cut; a result that is written in several pieces.
const Shapes kPointwise[] = {{{3, 128, 14, 15}, {144, 128, 1, 1}},
                             {{2, 144, 17, 17}, {128, 144, 1, 1}, "relu"},
                             {{13, 832, 7, 7}, {128, 832, 1, 1}},
                             {{2, 256, 32, 16}, {832, 256, 1, 1}}};

TEST(Pointwise, EqualsTheDefinition) {
  if (cpu::best_isa() < cpu::Isa::kAmx) GTEST_SKIP() << "no tiles here";
  for (const Shapes& s : kPointwise) {
    int used = 0, not_wanted = 0;
    const Tensors got = convolve(s, {}, "amx_1x1", &used),
                  want = convolve(s, {"layout"}, "amx_1x1", &not_wanted);
    EXPECT_EQ(used, 2) << s.x;
    EXPECT_EQ(not_wanted, 0) << "skipping 'layout' must give the definition everywhere";
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LT(distance(got[i], want[i]), 1e-6) << "fetch " << i << " of " << s.x;
  }
}

TEST(Pointwise, GivesTheSameBitsOnEveryNumberOfThreads) {
  if (cpu::best_isa() < cpu::Isa::kAmx) GTEST_SKIP() << "no tiles here";
  const int before = num_threads();
  for (const Shapes& s : kPointwise) {
    int used = 0;
    set_num_threads(1);
    const Tensors one = convolve(s, {}, "amx_1x1", &used);
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      const Tensors many = convolve(s, {}, "amx_1x1", &used);
      for (size_t i = 0; i < 3; ++i)  // the sum of dbias is cut by threads
        EXPECT_TRUE(std::ranges::equal(one[i].data<float>(), many[i].data<float>()))
            << "fetch " << i << " of " << s.x << ", " << threads << " threads";
    }
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace fleetx::testing
