#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/ir/builder.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

float gelu(float x) { return 0.5f * x * (1 + std::erf(x / std::sqrt(2.0f))); }

const AddCases cases("fused_elementwise", [](Cases& c) {
  const auto chain = [](const Tensors& in) -> Tensors {
    const Tensor product = zip(in[0], in[1], [](float a, float b) { return a * b; });
    return {map(product, [](float v) { return gelu(0.5f * v + 1); })};
  };
  for (const auto& [label, shape] :
       std::vector<std::pair<const char*, Shape>>{{"small", {3, 7}}, {"many_blocks", {70001}}})
    c.add({.label = label,
           .inputs = {{"xs", Tensors{random(shape, 1, -3, 3), random(shape, 2, -3, 3)}}},
           .attrs = {{"ops", ir::Strings{"elementwise_mul", "scale", "gelu"}},
                     {"args", ir::Strings{"x0 x1", "t0", "t1"}},
                     {"attrs", ir::Strings{"", "scale=0.5 bias=1.0", ""}},
                     {"results", ir::Ints{2}}},
           .outputs = {{"outs", 1}},
           .reference = chain});
  c.add({.label = "several_outputs",
         .inputs = {{"xs", Tensors{random({41}), random({41}, 1), random({41}, 2)}}},
         .attrs = {{"ops", ir::Strings{"sum", "relu", "elementwise_sub", "leaky_relu"}},
                   {"args", ir::Strings{"x0 x1 x2", "t0", "x2 t1", "t2"}},
                   {"attrs", ir::Strings{"", "", "", "alpha=0.25"}},
                   {"results", ir::Ints{3, 1, 1, 0}}},
         .outputs = {{"outs", 4}},
         .reference = [](const Tensors& in) -> Tensors {
           const auto add = [](float a, float b) { return a + b; };
           const Tensor sum = zip(zip(in[0], in[1], add), in[2], add);
           const Tensor relu = map(sum, [](float v) { return std::max(v, 0.0f); });
           const Tensor rest = zip(in[2], relu, [](float a, float b) { return a - b; });
           return {map(rest, [](float v) { return v < 0 ? 0.25f * v : v; }), relu, relu, sum};
         }});
  c.add({.label = "backward_ops",
         .inputs = {{"xs", Tensors{random({29}), random({29}, 1)}}},
         .attrs = {{"ops", ir::Strings{"tanh_grad", "elementwise_add"}},
                   {"args", ir::Strings{"x0 x1", "t0 x1"}},
                   {"attrs", ir::Strings{"", "act=relu"}},
                   {"results", ir::Ints{1}}},
         .outputs = {{"outs", 1}},
         .reference = [](const Tensors& in) -> Tensors {
           return {zip(in[0], in[1], [](float out, float dout) {
             return std::max(dout * (1 - out * out) + dout, 0.0f);
           })};
         }});
  c.add({.label = "f64",
         .inputs = {{"xs", Tensor::of<double>({3}, {1, 2, 3})}},
         .attrs = {{"ops", ir::Strings{"square", "sum"}},
                   {"args", ir::Strings{"x0", "t0"}},
                   {"results", ir::Ints{1}}},
         .outputs = {{"outs", 1}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::of<double>({3}, {1, 4, 9})};
         }});
  if (c.timed)
    c.add({.label = "perf",
           .inputs = {{"xs", Tensors{random({1 << 20}), random({1 << 20}, 1)}}},
           .attrs = {{"ops", ir::Strings{"elementwise_mul", "scale", "relu", "elementwise_add"}},
                     {"args", ir::Strings{"x0 x1", "t0", "t1", "t2 x1"}},
                     {"attrs", ir::Strings{"", "scale=0.5", "", ""}},
                     {"results", ir::Ints{3}}},
           .outputs = {{"outs", 1}},
           .reference = {},
           .perf = true});
});

void expect_error(const ir::Attrs& attrs, const std::string& part) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 3});
  try {
    b.op("fused_elementwise", {{"xs", x}}, attrs, {{"outs", "out"}});
    FAIL() << "no error; expected: " << part;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(FusedElementwise, MistakesAreNamed) {
  const auto attrs = [](const char* op, const char* args, const char* more, int result) {
    return ir::Attrs{{"ops", ir::Strings{op}},
                     {"args", ir::Strings{args}},
                     {"attrs", ir::Strings{more}},
                     {"results", ir::Ints{result}}};
  };
  expect_error(attrs("matmul", "x0 x0", "", 0), "'matmul' is not an element-wise op");
  expect_error(attrs("no_such_op", "x0", "", 0), "'no_such_op' is not an element-wise op");
  expect_error(attrs("relu", "x1", "", 0), "there is no x1");
  expect_error(attrs("relu", "t0", "", 0), "there is no t0");
  expect_error(attrs("relu", "y0", "", 0), "'y0' is no operand");
  expect_error(attrs("relu", "x0 x0", "", 0), "relu has 2 operands");
  expect_error(attrs("scale", "x0", "scale=fast", 0), "'scale=fast' is no attribute of scale");
  expect_error(attrs("scale", "x0", "speed=1.0", 0), "'speed=1.0' is no attribute of scale");
  expect_error(attrs("relu", "x0", "", 1), "there are 1 steps");
  expect_error(
      {{"ops", ir::Strings{"relu", "relu"}}, {"args", ir::Strings{"x0"}}, {"results", ir::Ints{0}}},
      "expected as many of each");
}

}  // namespace
}  // namespace fleetx::testing
