#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases fill("fill", [](Cases& c) {
  c.add({.label = "floats",
         .inputs = {},
         .attrs = {{"shape", ir::Ints{2, 3}}, {"value", 1.5}},
         .reference = [](const Tensors&) -> Tensors {
           return {filled({2, 3}, 1.5f)};
         }});
  c.add({.label = "integers",
         .inputs = {},
         .attrs = {{"shape", ir::Ints{3}}, {"value", 7}, {"dtype", "i64"}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::of<int64_t>({3}, {7, 7, 7})};
         }});
});

const AddCases like("fill_like", [](Cases& c) {
  c.add({.label = "as_x",
         .inputs = {{"x", random({2, 3})}},
         .attrs = {{"value", -2.0}},
         .reference = [](const Tensors&) -> Tensors {
           return {filled({2, 3}, -2.0f)};
         }});
  c.add({.label = "other_dtype",
         .inputs = {{"x", random({2})}},
         .attrs = {{"value", 1}, {"dtype", "i64"}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::of<int64_t>({2}, {1, 1})};
         }});
});

const AddCases batch("fill_batch_like", [](Cases& c) {
  c.add({.label = "batch_second",
         .inputs = {{"x", random({4, 5})}},
         .attrs = {{"shape", ir::Ints{2, -1, 3}}, {"value", 3.0}, {"output_dim", 1}},
         .reference = [](const Tensors&) -> Tensors {
           return {filled({2, 4, 3}, 3.0f)};
         }});
});

const AddCases values("assign_value", [](Cases& c) {
  c.add({.label = "floats",
         .inputs = {},
         .attrs = {{"shape", ir::Ints{2, 2}}, {"values", ir::Floats{1, 2.5, -3, 4}}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::of<float>({2, 2}, {1, 2.5f, -3, 4})};
         }});
  c.add({.label = "integers",
         .inputs = {},
         .attrs = {{"shape", ir::Ints{2}}, {"values", ir::Floats{1, -3}}, {"dtype", "i64"}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::of<int64_t>({2}, {1, -3})};
         }});
});

const AddCases arange("arange", [](Cases& c) {
  c.add({.label = "integers",
         .inputs = {},
         .attrs = {{"end", 4}, {"dtype", "i64"}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::of<int64_t>({4}, {0, 1, 2, 3})};
         }});
  c.add({.label = "downwards",
         .inputs = {},
         .attrs = {{"start", 1.0}, {"end", -0.1}, {"step", -0.5}},
         .reference = [](const Tensors&) -> Tensors {
           return {Tensor::of<float>({3}, {1, 0.5f, 0})};
         }});
});

void expect_error(const std::string& op, const ir::Attrs& attrs, const std::string& part) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  try {
    b.op(op, {}, attrs);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Fill, BadAttributesAreNamed) {
  expect_error("fill", {{"shape", ir::Ints{2, -1}}}, "every dimension must be known");
  expect_error("fill", {{"shape", ir::Ints{2}}, {"dtype", "f99"}}, "'f99' is not a dtype");
  expect_error("assign_value", {{"shape", ir::Ints{3}}, {"values", ir::Floats{1}}},
               "needs 3 values, got 1");
  expect_error("arange", {{"end", 3}, {"step", 0}}, "step not 0");
}

TEST(Fill, BatchLikeFollowsTheBatch) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 5});
  const ir::Var out = b.op("fill_batch_like", {{"x", x}}, {{"shape", ir::Ints{1, 7}}});
  EXPECT_EQ(out.shape(), (Shape{-1, 7}));
}

}  // namespace
}  // namespace fleetx::testing
