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
    const auto fc = [&](const std::string& layer, const ir::Var& in, int64_t from, int64_t to) {
      const auto guard = b.in_layer(layer);
      return static_cast<ir::Var>(b.op("fc", {{"x", in},
                                              {"w", weight(layer + ".w_0", {from, to})},
                                              {"bias", weight(layer + ".b_0", {to})}}));
    };
    const ir::Var h = fc("fc_0", x, 4, 8);
    const ir::Var a = b.op("relu", {{"x", h}});
    logits = fc("fc_1", a, 8, 3);
    const ir::Var each = b.op("softmax_cross_entropy", {{"x", logits}, {"label", label}});
    loss = b.op("mean", {{"x", each}}, {}, {{"out", "loss"}});
  }

  ir::Program main, startup;
  ir::Builder b;
  ir::Var x, label, logits, loss;
};

}  // namespace fleetx::testing
