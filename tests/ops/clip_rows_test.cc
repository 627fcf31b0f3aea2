#include <algorithm>

#include "fleetx/ir/builder.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("clip_rows", [](Cases& c) {
  const auto add = [&](const std::string& label, SparseRows rows, float low, float high) {
    c.add({.label = label,
           .inputs = {OpInput("x").sparse(std::move(rows))},
           .attrs = {{"min", low}, {"max", high}},
           .reference = [=](const Tensors& in) -> Tensors {
             return {map(in[0], [&](float v) { return std::clamp(v, low, high); })};
           }});
  };
  add("repeated_ids", random_rows(6, {5, 3}), -0.4f, 0.3f);
  add("nothing_to_clip", random_rows(6, {5, 3}), -10.0f, 10.0f);
  add("to_zero", random_rows(20, {9, 2}), 0.0f, 0.0f);
  SparseRows padded = random_rows(7, {5, 16}, 1);
  padded.padding = padded.ids.data<int64_t>()[0];
  add("padding", padded, -0.2f, 0.2f);
  add("no_rows", {Tensor::of<int64_t>({2}, {1, 1}), random({2, 3}), 4, 1}, -0.2f, 0.2f);
  add("many", random_rows(3000, {200, 17}), -1.0f, 2.0f);
});

TEST(ClipRows, RefusesWhatItCannotClip) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var dense = b.data("dense", f32, {5, 3});
  const ir::Var rows = b.op("embedding_grad", {{"ids", b.data("ids", i64, {5})}, {"dout", dense}},
                            {{"sparse", true}, {"shape", Shape{9, 3}}});
  expect_error(Error::Kind::kInvalidArgument, {"clip_rows", "between", "0.5"}, [&] {
    b.op("clip_rows", {{"x", rows}}, {{"min", 0.5}, {"max", 1.0}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"clip_rows", "sparse", "'dense'"}, [&] {
    b.op("clip_rows", {{"x", dense}}, {{"min", -1.0}, {"max", 1.0}});
  });
}

}  // namespace
}  // namespace fleetx::testing
