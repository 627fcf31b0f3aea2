// Layouts that flow: the same network, planned with blocked layouts and row-major throughout, gives
// the same values and gradients. Channel counts that no block divides show that padding stays zero.
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "fleetx/autograd/backward.h"
#include "fleetx/base/cpu.h"
#include "fleetx/base/rng.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

using ir::Var;

struct Network {
  ir::Program main, startup;
  ir::Builder b{main, startup};
  runtime::Scope scope;
  ir::Names parameters;

  Var parameter(const std::string& name, const Tensor& value) {
    const Var v = b.parameter({.name = name, .shape = value.shape()});
    scope.set(name, value);
    parameters.push_back(name);
    return v;
  }
  Var conv(const std::string& name, const Var& x, int64_t outputs, const ir::Attrs& attrs,
           int64_t groups = 1, int64_t kernel = 3) {
    const Shape shape{outputs, x.shape()[1] / groups, kernel, kernel};
    ir::Attrs all = attrs;
    all.emplace("groups", groups);
    return b.op("conv2d",
                {{"x", x},
                 {"w", parameter(name + "_w", random(shape, stable_hash(name), -0.3f, 0.3f))},
                 {"bias", parameter(name + "_b", random({outputs}, stable_hash(name) + 1))}},
                all);
  }
  Var norm(const std::string& name, const Var& x, const std::string& act) {
    const Shape channels{x.shape()[1]};
    const Var mean = b.state(name + "_mean", f32, channels);
    const Var variance = b.state(name + "_variance", f32, channels, 1.0);
    scope.set(name + "_mean", filled(channels, 0.0f));
    scope.set(name + "_variance", filled(channels, 1.0f));
    return b.op("batch_norm",
                {{"x", x},
                 {"scale", parameter(name + "_s", random(channels, 7, 0.5f, 1.5f))},
                 {"bias", parameter(name + "_b", random(channels, 8))},
                 {"mean", mean},
                 {"variance", variance}},
                {{"act", act}}, {{"mean_out", mean}, {"variance_out", variance}});
  }
  Var pool(const Var& x, const ir::Attrs& attrs) { return b.op("pool2d", {{"x", x}}, attrs); }
};

// Two convolutions in a row, so that the second meets a blocked input, with all that stands between
// them in a ResNet.
Var build(Network& n, int64_t channels) {
  const ir::Ints one{1, 1};
  Var x = n.b.data("x", f32, {2, 3, 14, 14});
  x = n.conv("c1", x, channels, {{"padding", one}});
  x = n.norm("n1", x, "relu");
  x = n.pool(x, {{"kernel", ir::Ints{3, 3}}, {"padding", one}});
  const Var skip = x;
  x = n.conv("c2", x, channels, {{"padding", one}, {"act", "relu"}});
  x = n.conv("c3", x, channels, {{"padding", one}}, channels);
  x = n.norm("n2", x, "");
  x = n.b.op("elementwise_add", {{"x", x}, {"y", skip}});
  x = n.pool(x, {{"type", "avg"}, {"adaptive", true}, {"kernel", ir::Ints{3, 4}}});
  x = n.b.op("conv2d_transpose",
             {{"x", x},
              {"w", n.parameter("t_w", random({channels, 9, 2, 2}, 5, -0.3f, 0.3f))},
              {"bias", n.parameter("t_b", random({9}, 6))}},
             {{"stride", ir::Ints{2, 2}}});
  x = n.norm("n3", x, "relu");
  return n.pool(x, {{"type", "avg"}, {"global", true}});
}

// oneDNN must not use what this CPU was found to fault on, or what FLEETX_MAX_ISA forbids.
void expect_usable(std::string_view implementation) {
  if (cpu::best_isa() < cpu::Isa::kAmx) {
    EXPECT_EQ(implementation.find("amx"), std::string_view::npos) << implementation;
  }
  if (cpu::best_isa() < cpu::Isa::kAvx512) {
    EXPECT_EQ(implementation.find("avx512"), std::string_view::npos) << implementation;
  }
  if (cpu::best_isa() < cpu::Isa::kAvx2) {
    EXPECT_EQ(implementation.find("avx"), std::string_view::npos) << implementation;
  }
}

Tensors train(int64_t channels, const std::set<std::string>& skip, int* blocked = nullptr) {
  Network n;
  const Var out = build(n, channels);
  std::vector<Var> parameters;
  for (const std::string& name : n.parameters) parameters.push_back(n.b.var(name));
  const Var seed = n.b.data("seed", f32, out.shape());
  ir::Names fetch{out.name()};
  for (const Var& g : autograd::gradients({out}, parameters, {seed})) fetch.push_back(g.name());
  for (const auto* state : {"n1_mean", "n2_variance", "n3_mean"}) fetch.emplace_back(state);
  runtime::ExecutorOptions options;
  options.plan.skip = skip;
  runtime::Executor exe(options);
  const runtime::Feeds feeds{{"x", random({2, 3, 14, 14}, 1)},
                             {"seed", random(out.shape(), 2, 0.5f, 1.5f)}};
  const runtime::Plan& plan = exe.plan(n.main, n.scope, feeds, fetch);
  for (const runtime::Step& step : plan.steps()) expect_usable(step.kernel->implementation());
  if (blocked)
    for (const runtime::Value& v : plan.values()) *blocked += !v.desc.layout.blocks.empty();
  exe.run(n.main, n.scope, feeds, fetch);
  return exe.run(n.main, n.scope, feeds, fetch);
}

class Layouts : public ::testing::TestWithParam<int64_t> {};

TEST_P(Layouts, BlockedEqualsRowMajor) {
  int blocked = 0;
  const Tensors got = train(GetParam(), {}, &blocked), want = train(GetParam(), {"layout"});
  if (cpu::best_isa() >= cpu::Isa::kAvx2) {  // below, oneDNN blocks only what needs no padding
    EXPECT_GT(blocked, 10) << "nothing was blocked, so nothing was compared";
  }
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    expect_close(got[i], want[i], 2e-4, str("fetch ", i, " with ", GetParam(), " channels"));
}

TEST_P(Layouts, SameBitsInEveryRun) {
  const Tensors got = train(GetParam(), {}), again = train(GetParam(), {});
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(std::memcmp(got[i].raw(), again[i].raw(), got[i].bytes()), 0) << "fetch " << i;
}

INSTANTIATE_TEST_SUITE_P(Channels, Layouts, ::testing::Values(16, 32, 20, 35));

}  // namespace
}  // namespace fleetx::testing
