// What the verifier finds in the ops and variables of a program. Guards, placement and training
// have files of their own.
#include "fleetx/ir/verifier.h"

#include <gtest/gtest.h>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "tests/support/expect_error.h"

namespace fleetx::ir {
namespace {

using testing::contains;
using testing::error_of;

constexpr const char* kGood = R"(program
data x : f32[-1,4]
param w : f32[4,2]
state s : f32[4]
var a : f32[-1,4]
var b : f32[-1,2]

forward:
a = scale(x) {scale=2.0}
b = fc(a, w, _)
)";

// The message after a change of a good program.
template <class Change>
std::string after(const Change& change) {
  Program p = parse_text(kGood);
  verify(p, "before");
  Rewriter rw(p);
  change(rw);
  return error_of([&] { verify(p, "after pass 'x'"); });
}

TEST(Verifier, MessagesBeginWithTheStage) {
  EXPECT_TRUE(contains(after([](Rewriter& rw) { rw.erase(rw.begin()); }), "after pass 'x': "));
}

TEST(Verifier, ReadsComeAfterWrites) {
  EXPECT_TRUE(contains(after([](Rewriter& rw) { rw.move(rw.begin(), rw.end()); }),
                       "reads 'a' before any op has written it"));
}

TEST(Verifier, ATemporaryHasOneValue) {
  EXPECT_TRUE(contains(
      after([](Rewriter& rw) {
        rw.append({.type = "scale", .inputs = {{"x", {"x"}}}, .outputs = {{"out", {"a"}}}});
      }),
      "which another op has already written"));
}

TEST(Verifier, DataIsNotWritten) {
  EXPECT_TRUE(contains(
      after([](Rewriter& rw) {
        rw.append({.type = "scale", .inputs = {{"x", {"a"}}}, .outputs = {{"out", {"x"}}}});
      }),
      "'x', which is fed by the user"));
}

TEST(Verifier, TypesAreThoseThatOpsMake) {
  const std::string error = after([](Rewriter& rw) { rw.edit_var("b").type.shape = {-1, 3}; });
  EXPECT_TRUE(contains(error, "output 'out' is f32[-1,2]"));
  EXPECT_TRUE(contains(error, "'b' is declared f32[-1,3]"));
  EXPECT_TRUE(
      contains(after([](Rewriter& rw) { rw.edit_var("a").type.dtype = DType::kF64; }), "a"));
}

TEST(Verifier, SlotsAreFilledAsDeclared) {
  EXPECT_TRUE(contains(after([](Rewriter& rw) { rw.set_inputs(rw.begin(), "x", {}); }),
                       "input 'x' must be given"));
  EXPECT_TRUE(contains(after([](Rewriter& rw) {
                         rw.set_inputs(rw.begin(), "x", {"x", "x"});
                       }),
                       "takes one variable, has 2"));
  EXPECT_TRUE(contains(after([](Rewriter& rw) { rw.set_inputs(rw.begin(), "x", {"gone"}); }),
                       "'gone', which the program does not have"));
}

TEST(Verifier, ParametersLiveFromStepToStep) {
  EXPECT_TRUE(contains(after([](Rewriter& rw) { rw.edit_var("w").persistable = false; }),
                       "parameter 'w' is not persistable"));
  EXPECT_TRUE(contains(after([](Rewriter& rw) { rw.edit_var("s").type.shape = {-2}; }),
                       "has the dimension -2"));
}

}  // namespace
}  // namespace fleetx::ir
