#include "fleetx/ir/training.h"

#include <gtest/gtest.h>

#include "fleetx/ir/proto.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/transform.h"
#include "fleetx/ir/verifier.h"
#include "tests/ir/parse_error.h"
#include "tests/support/expect_error.h"

namespace fleetx::ir {
namespace {

using testing::contains;
using testing::error_of;

constexpr const char* kTrain = R"(program
data x : f32[8,4]
param w : f32[4,1]
state lr : f32[1]
state @step@ : i64[1]
var y : f32[8,1]
var loss : f32[1]
var dloss : f32[1]
var dy : f32[8,1]
var dw : f32[4,1]
var half : f32[4,1]

forward:
y = fc(x, w, _)
loss = mean(y)

backward:
dloss = fill() {shape=[1], value=1.0}
dy = mean_grad(y, dloss)
_, dw, _ = fc_grad(x, w, _, _, dy)

update:
[w] = sgd([w], [dw], lr, _)
@step@ = increment(@step@) {value=1.0}

training:
loss(loss, dloss)
step(@step@)
parameter(w, dw, lr)
)";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kTrain;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Training, IsPartOfBothForms) {
  const Program p = parse_text(kTrain);
  const Training& t = p.training();
  EXPECT_EQ(t.loss, "loss");
  EXPECT_EQ(t.seed, "dloss");
  EXPECT_EQ(t.step, "@step@");
  ASSERT_EQ(t.parameters.size(), 1u);
  EXPECT_EQ(t.parameters[0], (Training::Parameter{"w", "dw", "lr"}));
  EXPECT_EQ(t.find("w"), &t.parameters[0]);
  EXPECT_EQ(t.find("x"), nullptr);
  EXPECT_EQ(t.find_gradient("dw"), &t.parameters[0]);
  EXPECT_EQ(parse_text(to_text(p)).training(), t);
  EXPECT_EQ(parse_proto(to_proto(p), "p.pb").training(), t);
  EXPECT_EQ(to_text(p).substr(to_text(p).find("training:")),
            "training:\nloss(loss, dloss)\nstep(@step@)\nparameter(w, dw, lr)\n");
}

TEST(Training, TheVerifierComparesItWithTheOps) {
  EXPECT_TRUE(contains(parse_error(replaced("loss(loss, dloss)", "loss(y, dloss)")), "one float"));
  EXPECT_TRUE(contains(parse_error(replaced("loss(loss, dloss)", "loss(loss, dy)")), "'dy' is"));
  EXPECT_TRUE(contains(parse_error(replaced("dloss = fill() {shape=[1], value=1.0}\n", "")),
                       "before any op has written it"));
  EXPECT_TRUE(contains(parse_error(replaced("parameter(w, dw, lr)", "parameter(x, dw, lr)")),
                       "'x' is not a parameter"));
  EXPECT_TRUE(contains(parse_error(replaced("parameter(w, dw, lr)", "parameter(w, dy, lr)")),
                       "the gradient 'dy' is f32[8,1], its parameter 'w' is f32[4,1]"));
  EXPECT_TRUE(contains(parse_error(replaced("parameter(w, dw, lr)", "parameter(w, half, lr)")),
                       "no op computes 'half'"));
  EXPECT_TRUE(contains(parse_error(replaced("parameter(w, dw, lr)", "parameter(w, dw, @step@)")),
                       "must be f32[1]"));
  EXPECT_TRUE(
      contains(parse_error(replaced("[w] = sgd([w], [dw], lr, _)\n", "")), "no op updates it"));
  EXPECT_TRUE(contains(
      parse_error(replaced("parameter(w, dw, lr)", "parameter(w, dw, lr)\nparameter(w, dw, lr)")),
      "twice"));
  EXPECT_TRUE(contains(parse_error(replaced("step(@step@)", "step(lr)")), "i64[1]"));
  EXPECT_TRUE(contains(parse_error(replaced("step(@step@)", "steps(@step@)")), "expected loss("));
}

TEST(Training, MaySayInWhichStepsGradientsAreApplied) {
  std::string text = replaced("step(@step@)", "step(@step@)\nready(on)");
  text.replace(text.find("var half"), 0, "var on : bool[1]\n");
  const std::string unknown = text;
  text.replace(text.find("dloss = fill"), 0, "on = less_than(lr, lr)\n");
  const Program p = parse_text(text);
  EXPECT_EQ(p.training().ready, "on");
  EXPECT_EQ(parse_text(to_text(p)).training(), p.training());
  EXPECT_EQ(parse_proto(to_proto(p), "p.pb").training(), p.training());
  EXPECT_TRUE(
      contains(parse_error(replaced("step(@step@)", "step(@step@)\nready(dw)")),
               "'dw', which says whether gradients are applied, is f32[4,1]; it must be bool[1]"));
  EXPECT_TRUE(contains(parse_error(unknown), "no op computes 'on'"));
}

TEST(Training, TheRewriterFollows) {
  Program p = parse_text(kTrain);
  Rewriter rw(p);
  const auto writer = rw.last_writer("dw");
  const auto scaled = rw.insert(std::next(writer), {.type = "scale",
                                                    .inputs = {{"x", {"dw"}}},
                                                    .outputs = {{"out", {"half"}}},
                                                    .attrs = {{"scale", 0.5}},
                                                    .role = Role::kBackward});
  rw.replace_later_uses(std::next(scaled), "dw", "half");
  EXPECT_EQ(p.training().parameters[0].gradient, "half");
  EXPECT_EQ(rw.update_of("w")->type(), "sgd");
  EXPECT_EQ(rw.update_of("w")->in("grad"), Names{"half"});
  verify(p);

  rw.set_gradient("w", "dw");
  EXPECT_EQ(p.training().parameters[0].gradient, "dw");
  EXPECT_THROW(rw.set_gradient("v", "dw"), Error);
  EXPECT_THROW(rw.set_gradient("w", "no_such_variable"), Error);
  // What training names stays, even where no op mentions it any more.
  EXPECT_THROW(rw.erase_var("dw"), Error);
  rw.drop_unused_vars();
  EXPECT_NE(p.find("loss"), nullptr);
}

TEST(Training, WhoNeedsItIsToldWhenThereIsNone) {
  const Program p = parse_text("program\n");
  EXPECT_TRUE(p.training().empty());
  const std::string error = error_of([&] { training_of(p, "data_parallel"); });
  EXPECT_TRUE(contains(error, "data_parallel: the program has no backward part"));
  Program empty;
  EXPECT_TRUE(
      contains(error_of([&] { Rewriter(empty).update_of("w"); }), "updates the parameter 'w'"));
}

TEST(Training, ProgramsForTestingTrainNothing) {
  const Program p = parse_text(kTrain);
  EXPECT_TRUE(clone_for_test(p).training().empty());
  EXPECT_TRUE(prune(p, {"loss"}).training().empty());
  EXPECT_EQ(Program(p).training(), p.training());
}

}  // namespace
}  // namespace fleetx::ir
