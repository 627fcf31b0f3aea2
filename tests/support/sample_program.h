// A small classifier with everything in it, for tests of ir, passes and runtime.
#pragma once

#include "fleetx/ir/builder.h"

namespace fleetx::testing {

struct SampleProgram {
  SampleProgram() : b(main, startup) {
    const auto at = b.at({"sample.cc", 7});
    x = b.data("x", DType::kF32, {-1, 4});
    label = b.data("label", DType::kI64, {-1, 1});
    const auto weight = [&](const std::string& name, Shape shape) {
      return b.parameter({.name = name,
                          .shape = std::move(shape),
                          .init = {"uniform", {{"low", -0.5}, {"high", 0.5}}}});
    };
    const ir::Var h = b.op(
        "fc", {{"x", x}, {"w", weight("fc_0.w_0", {4, 8})}, {"bias", weight("fc_0.b_0", {8})}});
    const ir::Var a = b.op("relu", {{"x", h}});
    logits = b.op("fc",
                  {{"x", a}, {"w", weight("fc_1.w_0", {8, 3})}, {"bias", weight("fc_1.b_0", {3})}});
    const ir::Var each = b.op("softmax_cross_entropy", {{"x", logits}, {"label", label}});
    loss = b.op("mean", {{"x", each}}, {}, {{"out", "loss"}});
  }

  ir::Program main, startup;
  ir::Builder b;
  ir::Var x, label, logits, loss;
};

}  // namespace fleetx::testing
