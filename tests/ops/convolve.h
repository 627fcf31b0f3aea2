// One convolution, planned with and without a way to compute it, for tests of such ways.
#pragma once

#include <cmath>

#include "fleetx/autograd/backward.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {

struct ConvolutionCase {
  Shape x, w;
  std::string act = {};
};

// out, dx, dw, dbias; counts the kernels with `name` in that of their implementation.
inline Tensors convolve(const ConvolutionCase& s, const std::set<std::string>& skip,
                        std::string_view name, int* used) {
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
inline double distance(const Tensor& got, const Tensor& want) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < want.data<float>().size(); ++i) {
    const double w = want.data<float>()[i], d = got.data<float>()[i] - w;
    apart += d * d;
    size += w * w;
  }
  return std::sqrt(apart / size);
}

}  // namespace fleetx::testing
