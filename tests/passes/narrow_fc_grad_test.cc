#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

const std::string kSplitVars = R"(program
data x : f32[-1,5]
data dout : f32[-1,2]
param w : f32[5,2]
var d0 : f32[-1,3]
var d1 : f32[-1,2]
var dw : f32[5,2]
)";
const std::string kDx = "var dx : f32[-1,5]\n";

std::string text(const std::string& split, const std::string& more = "") {
  return kSplitVars + kDx +
         "\nbackward:\ndx, dw, _ = fc_grad(x, w, _, _, dout)\n[d0, d1] = split(dx) {" + split +
         "}\n" + more;
}

TEST(NarrowFcGrad, ColumnsThatNobodyReads) {
  for (const char* axis : {"1", "-1"})
    expect_rewrite(narrow_fc_grad, text(std::string("axis=") + axis + ", sections=[3,2]"),
                   R"(program
data x : f32[-1,5]
data dout : f32[-1,2]
param w : f32[5,2]
var d0 : f32[-1,3]
var dw : f32[5,2]

backward:
d0, dw, _ = fc_grad(x, w, _, _, dout) {dx_columns=3}
)",
                   {"d0", "dw"});
}

TEST(NarrowFcGrad, NotWhereTheyAreReadOrFetched) {
  const std::string split = "axis=1, sections=[3,2]";
  expect_unchanged(narrow_fc_grad, text(split), {"d0", "d1", "dw"});
  expect_unchanged(narrow_fc_grad, text(split), {"d0", "dw", "dx"});
  expect_unchanged(narrow_fc_grad, text(split, "d1 = scale(d1) {scale=2.0}\n"), {"d0", "dw"});
}

TEST(NarrowFcGrad, OnlyColumns) {
  // Rows are cut, or what is cut is only a part of a row.
  expect_unchanged(narrow_fc_grad, R"(program
data x : f32[4,5]
data dout : f32[4,2]
param w : f32[5,2]
var dx : f32[4,5]
var d0 : f32[3,5]
var d1 : f32[1,5]

backward:
dx, _, _ = fc_grad(x, w, _, _, dout)
[d0, d1] = split(dx) {axis=0, sections=[3,1]}
)",
                   {"d0"});
  expect_unchanged(narrow_fc_grad, R"(program
data x : f32[4,2,5]
data dout : f32[4,2]
param w : f32[10,2]
var dx : f32[4,2,5]
var d0 : f32[4,2,3]
var d1 : f32[4,2,2]

backward:
dx, _, _ = fc_grad(x, w, _, _, dout)
[d0, d1] = split(dx) {axis=2, sections=[3,2]}
)",
                   {"d0"});
}

}  // namespace
}  // namespace fleetx::passes
