#include "fleetx/ir/builder.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases dense("accumulate", [](Cases& c) {
  const auto add = [&](const std::string& label, const Shape& shape, bool start) {
    c.add({.label = label,
           .inputs = {OpInput("acc", random(shape)).state(), OpInput("x", random(shape, 1)),
                      OpInput("start", Tensor::of<bool>({1}, {start}))},
           .updates = {{"acc_out", "acc"}},
           .reference = [=](const Tensors& in) -> Tensors {
             return {zip(in[0], in[1], [=](float a, float x) { return start ? x : a + x; })};
           }});
  };
  add("adds", {7, 5}, false);
  add("starts", {7, 5}, true);
  add("many", {300, 257}, false);
});

// How often each row of the table stands in x; padding is left out.
Tensor counts(const SparseRows& x) {
  Tensor out = filled({x.table}, 0.0f);
  for (const int64_t id : x.ids.data<int64_t>())
    if (id != x.padding) out.data<float>()[id] += 1;
  return out;
}

const AddCases rows("accumulate_rows", [](Cases& c) {
  const auto add = [&](const std::string& label, const SparseRows& x) {
    const Shape shape{x.table, x.values.shape()[1]};
    c.add({.label = label,
           .inputs = {OpInput("acc", random(shape, 3)).state(),
                      OpInput("touched", random({x.table}, 4)).state(), OpInput("x").sparse(x)},
           .updates = {{"acc_out", "acc"}, {"touched_out", "touched"}},
           .reference = [=](const Tensors& in) -> Tensors {
             const auto plus = [](float a, float b) { return a + b; };
             return {zip(in[0], in[2], plus), zip(in[1], counts(x), plus)};
           }});
  };
  add("repeated_ids", random_rows(6, {5, 3}));
  SparseRows padded = random_rows(7, {5, 16}, 1);
  padded.padding = padded.ids.data<int64_t>()[0];
  add("padding", padded);
  add("many", random_rows(3000, {200, 17}));
});

const AddCases take("take_rows", [](Cases& c) {
  // Rows 1 and 4 of six are touched.
  const Tensor touched = Tensor::of<float>({6}, {0, 2, 0, 0, 0.5f, 0});
  const auto add = [&](const std::string& label, int64_t width, bool scaled) {
    std::vector<OpInput> inputs{OpInput("acc", random({6, width}, 3)).state(),
                                OpInput("touched", touched).state(),
                                OpInput("like").sparse(random_rows(2, {6, width}))};
    if (scaled) inputs.push_back(OpInput("scale", filled({1}, 0.25f)).no_grad());
    c.add({.label = label,
           .inputs = inputs,
           .attrs = {{"batches", 3}, {"factor", 2.0}},
           .updates = {{"acc_out", "acc"}, {"touched_out", "touched"}},
           .reference = [=](const Tensors& in) -> Tensors {
             Tensor out = filled({6, width}, 0.0f);
             Tensor left = map(in[0], [](float x) { return x; });
             for (const int64_t id : {1, 4})
               for (int64_t j = 0; j < width; ++j) {
                 const int64_t at = id * width + j;
                 out.data<float>()[at] = in[0].data<float>()[at] * (scaled ? 0.5f : 2.0f);
                 left.data<float>()[at] = 0;
               }
             return {out, left, filled({6}, 0.0f)};
           }});
  };
  add("factor", 3, false);
  add("scale", 40, true);
});

TEST(TakeRows, RefusesMoreRowsThanThereIsRoomFor) {
  const auto take = [](int64_t rows, int64_t of_batch) {
    (void)run_op("take_rows", {.inputs = {OpInput("acc", random({rows, 2})).state(),
                                          OpInput("touched", filled({rows}, 1.0f)).state(),
                                          OpInput("like").sparse(random_rows(of_batch, {rows, 2}))},
                               .attrs = {{"batches", 2}},
                               .updates = {{"acc_out", "acc"}, {"touched_out", "touched"}}});
  };
  take(4096, 1);  // of larger batches, before more workers resumed
  take(5000, 2500);
  expect_error(Error::Kind::kInvalidArgument, {"take_rows", "4096 rows", "drop_last"},
               [&] { take(5000, 2000); });
}

TEST(Accumulate, RefusesOtherTypes) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {5, 3});
  const ir::Var start = b.data("start", boolean, {1});
  const ir::Var other = b.state("other", f32, {5, 4});
  const ir::Var acc = b.state("acc", f32, {5, 3});
  expect_error(Error::Kind::kInvalidArgument, {"accumulate", "'x'", "'other'"}, [&] {
    b.op("accumulate", {{"acc", other}, {"x", x}, {"start", start}}, {}, {{"acc_out", other}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"accumulate", "in place"}, [&] {
    b.op("accumulate", {{"acc", acc}, {"x", x}, {"start", start}}, {}, {{"acc_out", "new"}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"accumulate_rows", "sparse"}, [&] {
    b.op("accumulate_rows", {{"acc", acc}, {"touched", b.state("t", f32, {5})}, {"x", x}}, {},
         {{"acc_out", acc}, {"touched_out", "t"}});
  });
}

}  // namespace
}  // namespace fleetx::testing
