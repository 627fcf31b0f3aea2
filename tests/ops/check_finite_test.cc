#include <limits>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("check_finite", [](Cases& c) {
  const auto add = [&](const char* label, Tensors xs, bool finite) {
    c.add({.label = label,
           .inputs = {{"xs", std::move(xs)}},
           .reference = [finite](const Tensors&) -> Tensors {
             return {Tensor::of<bool>({1}, {finite})};
           }});
  };
  const auto with = [](int64_t n, int64_t at, float value) {
    Tensor x = random({n});
    x.data<float>()[static_cast<size_t>(at)] = value;
    return x;
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  add("fine", {random({3, 4}), with(5, 2, kLargest)}, true);
  add("nan", {random({3, 4}), with(1001, 1000, kNan)}, false);
  add("infinity", {with(17, 0, -kInfinity), random({3})}, false);
  add("far_away", {with(300001, 299999, kInfinity)}, false);
  add("f64", {Tensor::of<double>({3}, {1.0, 1e300, std::numeric_limits<double>::infinity()})},
      false);
  add("f64_fine", {Tensor::of<double>({2}, {1.0, 1e300})}, true);
  add("bf16_fine", {Tensor::of<BFloat16>({3}, {1.0f, 3e38f, -2.0f})}, true);
  add("bf16", {Tensor::of<BFloat16>({3}, {1.0f, kNan, -2.0f})}, false);
  add("f16_fine", {Tensor::of<Half>({3}, {1.0f, 65504.0f, -2.0f}), random({3})}, true);
  add("f16", {Tensor::of<Half>({3}, {1.0f, 70000.0f, -2.0f})}, false);
  for (const bool finite : {true, false}) {
    SparseRows rows = random_rows(4, {9, 3});
    if (!finite) rows.values.data<float>()[11] = kNan;
    c.add({.label = finite ? "sparse_fine" : "sparse_nan",
           .inputs = {OpInput("xs", random({3})).sparse(rows)},
           .reference = [finite](const Tensors&) -> Tensors {
             return {Tensor::of<bool>({1}, {finite})};
           }});
  }
  if (c.timed)
    c.add({.label = "perf", .inputs = {{"xs", random({1 << 20})}}, .reference = {}, .perf = true});
});

}  // namespace
}  // namespace fleetx::testing
