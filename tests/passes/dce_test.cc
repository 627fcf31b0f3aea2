#include "fleetx/passes/passes.h"
#include "tests/passes/texts.h"

namespace fleetx::passes {
namespace {

TEST(Dce, DropsWhatNobodyNeeds) {
  expect_rewrite(dce, R"(program
data x : f32[-1,4]
var a : f32[-1,4]
var b : f32[-1,4]
var c : f32[-1,4]
var out : f32[-1,4]

forward:
a = scale(x) {scale=2.0}
b = scale(a) {scale=3.0}
c = scale(b) {scale=4.0}
out = scale(a) {scale=5.0}
)",
                 R"(program
data x : f32[-1,4]
var a : f32[-1,4]
var out : f32[-1,4]

forward:
a = scale(x) {scale=2.0}
out = scale(a) {scale=5.0}
)",
                 {"out"});
}

TEST(Dce, KeepsWritesToState) {
  expect_unchanged(dce, R"(program
data x : f32[2]
state s : f32[2]
var a : f32[2]

forward:
a = scale(x) {scale=2.0}
s = scale(a) {scale=3.0}
)");
}

// Another rank may fetch `all`: it would wait for this one for ever.
TEST(Dce, KeepsCollectivesThatNobodyReads) {
  expect_unchanged(dce, R"(program
data x : f32[2]
var a : f32[2]
var all : f32[4]

forward:
a = scale(x) {scale=2.0}
[all] = all_gather([a]) {group="dp", ranks=2}
)");
}

TEST(Dce, KeepsVariablesItDidNotOrphan) {
  expect_unchanged(dce, R"(program
data x : f32[2]
param w : f32[2]
var unused : f32[2]
var a : f32[2]

forward:
a = scale(x) {scale=2.0}
)",
                   {"a"});
}

TEST(Dce, DropsUpdatesInPlaceOfDeadVariables) {
  expect_rewrite(dce, R"(program
data x : f32[2]
var a : f32[2]
var out : f32[2]

forward:
a = scale(x) {scale=2.0}
a = scale(a) {scale=2.0}
out = scale(x) {scale=3.0}
)",
                 R"(program
data x : f32[2]
var out : f32[2]

forward:
out = scale(x) {scale=3.0}
)",
                 {"out"});
}

}  // namespace
}  // namespace fleetx::passes
