#include "fleetx/ir/builder.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

// The elements of the first input under another shape.
auto as(Shape shape) {
  return [shape](const Tensors& in) -> Tensors { return {in[0].clone().reshaped(shape)}; };
}

const AddCases reshape("reshape", [](Cases& c) {
  c.add({.label = "keep_and_rest",
         .inputs = {{"x", random({2, 3, 4})}},
         .attrs = {{"shape", ir::Ints{0, -1, 2}}},
         .reference = as({2, 6, 2})});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({6}, 0, 100)}},
         .attrs = {{"shape", ir::Ints{3, 2}}},
         .reference = as({3, 2}),
         .gradient = false});
  // The gradient writes the unknown batch as -1.
  c.add({.label = "unknown_batch",
         .inputs = {{"x", random({2, 3, 4})}},
         .attrs = {{"shape", ir::Ints{-1, 4}}},
         .unknown = {{"x", 0}},
         .reference = as({6, 4})});
  // Two unknown dimensions that the op keeps, as in attention.
  c.add({.label = "unknown_kept",
         .inputs = {{"x", random({2, 3, 4})}},
         .attrs = {{"shape", ir::Ints{0, 0, 2, 2}}},
         .unknown = {{"x", 0}, {"x", 1}},
         .reference = as({2, 3, 2, 2})});
  // Two that it does not keep: the gradient has to look at x.
  c.add({.label = "unknown_merged",
         .inputs = {{"x", random({2, 3, 4})}},
         .attrs = {{"shape", ir::Ints{-1, 4}}},
         .unknown = {{"x", 0}, {"x", 1}},
         .reference = as({6, 4})});
  c.add({.label = "unknown_to_fixed",
         .inputs = {{"x", random({2, 6})}},
         .attrs = {{"shape", ir::Ints{3, 4}}},
         .unknown = {{"x", 0}},
         .reference = as({3, 4})});
});

const AddCases reshape_by("reshape_by", [](Cases& c) {
  const Tensors lengths{random({5, 2}, 1), random({3}, 2)};
  c.add({.label = "first_of_another",
         .inputs = {{"x", random({4, 10})}, OpInput("lengths", lengths).no_grad()},
         .attrs = {{"shape", ir::Ints{-2, -1, 2}}, {"axes", ir::Ints{1, 0}}},
         .unknown = {{"x", 0}},
         .reference = as({2, 10, 2})});
  c.add({.label = "two_lengths",
         .inputs = {{"x", random({15, 4})}, OpInput("lengths", lengths).no_grad()},
         .attrs = {{"shape", ir::Ints{-3, -2, 4}}, {"axes", ir::Ints{0, 0}}},
         .reference = as({3, 5, 4})});
});

TEST(ReshapeBy, WhatIsLeftIsUnknownWhileALengthIs) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 40}), other = b.data("other", f32, {-1, 3});
  const ir::Var out = b.op("reshape_by", {{"x", x}, {"lengths", std::vector<ir::Var>{other}}},
                           {{"shape", ir::Ints{-2, -1, 20}}, {"axes", ir::Ints{0}}});
  EXPECT_EQ(out.shape(), (Shape{-1, -1, 20}));
  expect_error(Error::Kind::kInvalidArgument, {"reshape_by", "names length 1 of 1"}, [&] {
    b.op("reshape_by", {{"x", x}, {"lengths", std::vector<ir::Var>{other}}},
         {{"shape", ir::Ints{-3, -1}}, {"axes", ir::Ints{0}}});
  });
}

const AddCases reshape_like("reshape_like", [](Cases& c) {
  c.add({.label = "other_rank",
         .inputs = {{"x", random({2, 6})}, OpInput("like", random({3, 4})).no_grad()},
         .reference = as({3, 4})});
});

const AddCases flatten("flatten", [](Cases& c) {
  c.add({.label = "images", .inputs = {{"x", random({2, 3, 2, 2})}}, .reference = as({2, 12})});
  c.add({.label = "axis_0",
         .inputs = {{"x", random({2, 3})}},
         .attrs = {{"axis", 0}},
         .reference = as({1, 6})});
  c.add({.label = "unknown_batch",
         .inputs = {{"x", random({4, 3, 2})}},
         .attrs = {{"axis", 2}},
         .unknown = {{"x", 0}},
         .reference = as({12, 2})});
});

const AddCases flatten_range("flatten_range", [](Cases& c) {
  c.add({.label = "middle",
         .inputs = {{"x", random({2, 3, 2, 5})}},
         .attrs = {{"start", 1}, {"stop", 2}},
         .reference = as({2, 6, 5})});
  c.add({.label = "all", .inputs = {{"x", random({2, 3, 2})}}, .reference = as({12})});
});

const AddCases squeeze("squeeze", [](Cases& c) {
  c.add({.label = "all_ones", .inputs = {{"x", random({1, 3, 1, 2})}}, .reference = as({3, 2})});
  c.add({.label = "named",
         .inputs = {{"x", random({1, 3, 1, 2})}},
         .attrs = {{"axes", ir::Ints{-2}}},
         .unknown = {{"x", 0}, {"x", 1}},
         .reference = as({1, 3, 2})});
});

const AddCases unsqueeze("unsqueeze", [](Cases& c) {
  c.add({.label = "ends",
         .inputs = {{"x", random({3, 2})}},
         .attrs = {{"axes", ir::Ints{0, -1}}},
         .unknown = {{"x", 0}, {"x", 1}},
         .reference = as({1, 3, 2, 1})});
  c.add({.label = "none",
         .inputs = {{"x", random({3, 2})}},
         .attrs = {{"axes", ir::Ints{}}},
         .reference = as({3, 2})});
});

void expect_bad(const std::string& op, const OpCase& c,
                std::initializer_list<std::string_view> parts) {
  expect_error(Error::Kind::kInvalidArgument, parts, [&] { run_op(op, c); });
}

TEST(ReshapeErrors, NameShapeAndWish) {
  const auto x = [](Shape shape) { return std::vector<OpInput>{{"x", random(shape)}}; };
  expect_bad("reshape", {.inputs = x({2, 3}), .attrs = {{"shape", ir::Ints{4, 2}}}},
             {"reshape", "[2,3]", "6 elements", "[4,2]"});
  expect_bad("reshape", {.inputs = x({2, 3}), .attrs = {{"shape", ir::Ints{-1, -1}}}},
             {"more than one -1"});
  expect_bad("reshape", {.inputs = x({2, 3}), .attrs = {{"shape", ir::Ints{6, 1, 0}}}},
             {"keeps dimension 2"});
  expect_bad("reshape", {.inputs = x({2, 3}), .attrs = {{"shape", ir::Ints{-1, 4}}}}, {"[-1,4]"});
  expect_bad("flatten", {.inputs = x({2, 3}), .attrs = {{"axis", 3}}}, {"axis", "3"});
  expect_bad("flatten_range", {.inputs = x({2, 3}), .attrs = {{"start", 1}, {"stop", 0}}},
             {"start 1"});
  expect_bad("squeeze", {.inputs = x({2, 3}), .attrs = {{"axes", ir::Ints{1}}}},
             {"axis 1", "size 1"});
  expect_bad("squeeze", {.inputs = x({2, 1}), .unknown = {{"x", 0}}}, {"name the axes"});
  expect_bad("unsqueeze", {.inputs = x({2, 3}), .attrs = {{"axes", ir::Ints{0, 0}}}}, {"twice"});
}

}  // namespace
}  // namespace fleetx::testing
