#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "tests/ops/class_loss_case.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

const AddCases cases("softmax_cross_entropy", [](Cases& c) {
  add_class_loss_cases(
      c, [](Shape shape) { return random(shape, 1, -3.0f, 3.0f); },
      [](const Tensors& in, int axis, int64_t ignored) -> Tensors {
        const Tensor p = softmax_of(in[0], axis);
        return {entropy_of(p, in[1], axis, ignored), p};
      });
  // The label counts 1 - smoothing, and smoothing is spread over all classes.
  for (const Shape& shape : {Shape{6, 5}, Shape{2, 5, 70}}) {
    const int axis = 1;
    OpCase smooth{
        .label = str("smoothing_", shape.rank()),
        .inputs = {
            {"x", random(shape, 1, -3.0f, 3.0f)},
            {"label", random_ints(shape.rank() == 2 ? Shape{6, 1} : Shape{2, 1, 70}, 0, 5)}}};
    smooth.attrs = {{"smoothing", 0.3}, {"axis", axis}};
    smooth.reference = [](const Tensors& in) -> Tensors {
      const Tensor p = softmax_of(in[0], axis), hard = entropy_of(p, in[1], axis);
      Tensor even(f32, in[0].shape());
      std::ranges::fill(even.data<float>(), 0.2f);
      const Tensor spread = entropy_of(p, even, axis);
      Tensor out(f32, hard.shape());
      for (size_t i = 0; i < out.data<float>().size(); ++i)
        out.data<float>()[i] = 0.7f * hard.data<float>()[i] + 0.3f * spread.data<float>()[i];
      return {out, p};
    };
    c.add(smooth);
  }
  for (OpCase& each : c.list) each.epsilon = 1e-2;
  if (c.timed)
    c.add({.label = "vocabulary",
           .inputs = {{"x", Tensor(f32, {512, 30522})}, {"label", random_ints({512, 1}, 0, 30522)}},
           .perf = true});
  if (c.timed)
    c.add({.label = "images",
           .inputs = {{"x", random({128, 1000})}, {"label", random_ints({128, 1}, 0, 1000)}},
           .perf = true});
});

// Far logits neither overflow nor lose the loss.
TEST(SoftmaxCrossEntropy, LargeLogits) {
  const OpCase c{.label = "",
                 .inputs = {{"x", Tensor::of<float>({2, 3}, {500, 0, -500, 90, 90, 90})},
                            {"label", Tensor::of<int64_t>({2}, {2, 0})}}};
  const Tensors out = run_op("softmax_cross_entropy", c);
  EXPECT_FLOAT_EQ(out[0].data<float>()[0], 1000.0f);
  EXPECT_FLOAT_EQ(out[0].data<float>()[1], std::log(3.0f));
  EXPECT_FLOAT_EQ(out[1].data<float>()[0], 1.0f);
  EXPECT_EQ(out[1].data<float>()[2], 0.0f);
}

TEST(SoftmaxCrossEntropy, SmoothingIsBelowOneAndForHardLabels) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 10}), label = b.data("label", i64, {-1, 1});
  expect_error(Error::Kind::kInvalidArgument, {"smoothing is 1", "[0, 1)"}, [&] {
    b.op("softmax_cross_entropy", {{"x", x}, {"label", label}}, {{"smoothing", 1.0}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"smoothing is for hard labels"}, [&] {
    b.op("softmax_cross_entropy", {{"x", x}, {"label", x}},
         {{"smoothing", 0.1}, {"soft_label", true}});
  });
}

TEST(SoftmaxCrossEntropy, NotANumberIsSeen) {
  const OpCase c{.label = "",
                 .inputs = {{"x", Tensor::of<float>({1, 3}, {1, NAN, 2})},
                            {"label", Tensor::of<int64_t>({1}, {0})}}};
  EXPECT_TRUE(std::isnan(run_op("softmax_cross_entropy", c)[0].item<float>()));
}

TEST(SoftmaxCrossEntropy, ABadLabelIsNamed) {
  for (const int64_t bad : {int64_t{3}, int64_t{-1}}) {
    const OpCase c{
        .label = "",
        .inputs = {{"x", random({4, 3})}, {"label", Tensor::of<int64_t>({4, 1}, {0, 2, bad, 1})}}};
    for (const std::string op : {"softmax_cross_entropy", "cross_entropy", "accuracy"})
      expect_error(Error::Kind::kInvalidArgument,
                   {op, str("label ", bad, " at position 2"), "3 classes"}, [&] { run_op(op, c); });
  }
}

TEST(SoftmaxCrossEntropy, RefusesShapesThatDoNotFit) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 10});
  const auto expect = [&](std::initializer_list<std::string_view> parts, const ir::Var& label,
                          const ir::Attrs& attrs) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      b.op("softmax_cross_entropy", {{"x", x}, {"label", label}}, attrs);
    });
  };
  expect({"'two' is i64[-1,2]", "'x' is f32[-1,10]"}, b.data("two", i64, {-1, 2}), {});
  expect({"i64 or i32", "'soft' is f32[-1,10]"}, b.data("soft", f32, {-1, 10}), {});
  expect({"soft labels", "'hard' is i64[-1,1]"}, b.data("hard", i64, {-1, 1}),
         {{"soft_label", true}});
  expect({"no axis 2"}, b.data("other", i64, {-1, 1}), {{"axis", 2}});
}

}  // namespace
}  // namespace fleetx::testing
