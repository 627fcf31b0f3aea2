#include <cmath>
#include <limits>

#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
Tensors rounded(const Tensors& in) {
  Tensor out(DTypeOf<T>::value, in[0].shape());
  bool finite = true;
  for (size_t i = 0; i < out.data<T>().size(); ++i) {
    out.data<T>()[i] = T(in[0].data<float>()[i]);
    finite = finite && std::isfinite(static_cast<float>(out.data<T>()[i]));
  }
  return {out, Tensor::of<bool>({1}, {finite})};
}

Tensor with(int64_t n, int64_t at, float value) {
  Tensor x = random({n});
  x.data<float>()[static_cast<size_t>(at)] = value;
  return x;
}

const AddCases cases("round_checked", [](Cases& c) {
  const auto add = [&](const std::string& label, const Tensor& x, auto zero) {
    using T = decltype(zero);
    c.add({.label = label,
           .inputs = {{"x", x}},
           .attrs = {{"dtype", DTypeOf<T>::value}},
           .reference = rounded<T>,
           .tolerance = 0});
  };
  add("bf16", random({3, 5}), BFloat16());
  add("f16", random({3, 5}), Half());
  add("large", random({70001}), BFloat16());
  add("nan", with(1001, 1000, kNan), BFloat16());
  add("nan_far_away", with(300001, 299999, kNan), BFloat16());
  add("infinity", with(40, 0, -kInfinity), Half());
  // Finite numbers, but for the 16 bits.
  add("too_large", with(9, 4, std::numeric_limits<float>::max()), BFloat16());
  add("too_large_f16", with(9, 4, 70000.0f), Half());
  add("not_too_large", with(9, 4, 70000.0f), BFloat16());
  if (c.timed)
    c.add({.label = "perf",
           .inputs = {{"x", random({1 << 22})}},
           .attrs = {{"dtype", bf16}},
           .reference = {},
           .perf = true});
});

TEST(RoundChecked, RoundsTo16BitsOnly) {
  const OpCase c{
      .label = "", .inputs = {{"x", random({3})}}, .attrs = {{"dtype", f64}}, .reference = {}};
  expect_error(Error::Kind::kInvalidArgument, {"dtype is f64", "bf16"},
               [&] { run_op("round_checked", c); });
}

}  // namespace
}  // namespace fleetx::testing
