#include <gtest/gtest.h>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

template <class From, class To>
Tensor convert(const Tensor& x) {
  Tensor out(DTypeOf<To>::value, x.shape());
  for (size_t i = 0; i < x.data<From>().size(); ++i)
    out.data<To>()[i] = static_cast<To>(static_cast<float>(x.data<From>()[i]));
  return out;
}

const AddCases cases("cast", [](Cases& c) {
  const Tensor x = random({3, 13}, 1, -9, 9);
  const auto add = [&](const char* label, const Tensor& from, DType to,
                       Tensor (*f)(const Tensor&)) {
    c.add({.label = label,
           .inputs = {{"x", from}},
           .attrs = {{"dtype", to}},
           .reference = [f](const Tensors& in) -> Tensors { return {f(in[0])}; },
           .gradient = false});
  };
  add("f32_to_f64", x, f64, convert<float, double>);
  add("f32_to_i64", x, i64, convert<float, int64_t>);
  add("f32_to_i32", x, i32, convert<float, int32_t>);
  add("f32_to_f16", x, f16, convert<float, Half>);
  add("f32_to_bf16", x, bf16, convert<float, BFloat16>);
  add("f16_to_f32", convert<float, Half>(x), f32, convert<Half, float>);
  add("bf16_to_f16", convert<float, BFloat16>(x), f16, convert<BFloat16, Half>);
  add("i64_to_f32", random_ints({17}, -9, 9), f32, convert<int64_t, float>);
  add("i64_to_bool", random_ints({17}, -1, 2), boolean, convert<int64_t, bool>);
  Tensor flags(boolean, {5});
  flags.data<bool>()[2] = true;
  add("bool_to_f32", flags, f32, convert<bool, float>);
  c.add({.label = "same",
         .inputs = {{"x", x}},
         .attrs = {{"dtype", "f32"}},
         .reference = [](const Tensors& in) -> Tensors { return {in[0]}; }});
  if (c.timed)
    c.add({.label = "perf_f32_to_bf16",
           .inputs = {{"x", random({1 << 20})}},
           .attrs = {{"dtype", "bf16"}},
           .reference = {},
           .perf = true});
});

TEST(Cast, SmallFractionsAreTrue) {
  const Tensor got =
      run_op("cast", {.label = "",
                      .inputs = {{"x", Tensor::of<float>({3}, {0.25f, 0.0f, -0.5f})}},
                      .attrs = {{"dtype", "bool"}},
                      .reference = {}})[0];
  EXPECT_TRUE(got.data<bool>()[0]);
  EXPECT_FALSE(got.data<bool>()[1]);
  EXPECT_TRUE(got.data<bool>()[2]);
}

}  // namespace
}  // namespace fleetx::testing
