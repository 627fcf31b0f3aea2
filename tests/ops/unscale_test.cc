#include <cmath>
#include <limits>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
Tensor in_type(const Tensor& x) {
  Tensor out(DTypeOf<T>::value, x.shape());
  std::copy(x.data<float>().begin(), x.data<float>().end(), out.data<T>().begin());
  return out;
}

template <class T>
Tensors divided(const Tensors& in) {
  Tensor out(f32, in[0].shape());
  bool finite = true;
  for (size_t i = 0; i < out.data<float>().size(); ++i) {
    out.data<float>()[i] = static_cast<float>(in[0].data<T>()[i]) / in[1].item<float>();
    finite = finite && std::isfinite(out.data<float>()[i]);
  }
  return {out, Tensor::of<bool>({1}, {finite})};
}

Tensor with(int64_t n, int64_t at, float value) {
  Tensor x = random({n});
  x.data<float>()[static_cast<size_t>(at)] = value;
  return x;
}

const AddCases cases("unscale", [](Cases& c) {
  const auto add = [&](const std::string& label, const Tensor& x, float scale, auto zero) {
    using T = decltype(zero);
    c.add({.label = label,
           .inputs = {{"x", in_type<T>(x)}, {"scale", Tensor::scalar(scale)}},
           .outputs = {{"finite", 1}},
           .reference = divided<T>,
           .tolerance = 1e-6});
  };
  add("f32", random({3, 5}), 1024, 0.0f);
  add("f32_large", random({70001}), 26214.4f, 0.0f);
  add("bf16", random({33}), 32768, BFloat16());
  add("f16", random({33}), 32768, Half());
  add("nan", with(1001, 1000, kNan), 2, 0.0f);
  add("nan_far_away", with(300001, 299999, kNan), 2, 0.0f);
  add("infinity_bf16", with(40, 0, -kInfinity), 2, BFloat16());
  add("infinity_f16", with(40, 39, 70000.0f), 2, Half());
  // The largest number is finite, but not what a scale below 1 makes of it.
  add("too_large", with(9, 4, std::numeric_limits<float>::max()), 0.5f, 0.0f);
  c.add({.label = "no_flag",
         .inputs = {{"x", random({7})}, {"scale", Tensor::scalar(4.0f)}},
         .reference = [](const Tensors& in) -> Tensors { return {divided<float>(in)[0]}; }});
  for (const bool finite : {true, false}) {
    SparseRows rows = random_rows(5, {9, 3});
    if (!finite) rows.values.data<float>()[11] = kNan;
    c.add({.label = finite ? "sparse" : "sparse_nan",
           .inputs = {OpInput("x").sparse(rows), {"scale", Tensor::scalar(8.0f)}},
           .outputs = {{"finite", 1}},
           .reference = [finite](const Tensors& in) -> Tensors {
             return {finite ? divided<float>(in)[0] : Tensor(), Tensor::of<bool>({1}, {finite})};
           }});
  }
  if (c.timed)
    c.add({.label = "perf_bf16",
           .inputs = {{"x", in_type<BFloat16>(random({1 << 22}))}, {"scale", Tensor::scalar(8.0f)}},
           .outputs = {{"finite", 1}},
           .reference = {},
           .perf = true});
});

}  // namespace
}  // namespace fleetx::testing
