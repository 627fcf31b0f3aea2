#include "fleetx/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/optim/schedule.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::optim {
namespace {

using ir::Var;
using testing::expect_error;
using testing::filled;
using testing::random;

// loss = sum of the squares of (parameter - target) / 2, over parameters a [3,4] and b [5].
class Squares {
 public:
  explicit Squares(const ir::Attrs& attrs_a = {}, const ir::Attrs& attrs_b = {})
      : b(main, startup) {
    const ir::Initializer init{"uniform", {{"low", 0.5}, {"high", 1.0}}};
    const Var x = b.parameter({.name = "a", .shape = {3, 4}, .init = init, .attrs = attrs_a});
    const Var y = b.parameter({.name = "b", .shape = {5}, .init = init, .attrs = attrs_b});
    loss = b.op("sum", {{"xs", {half_square(x), half_square(y)}}}, {}, {{"out", "loss"}});
  }

  void start() {
    ir::verify(main);
    exe.run(startup, scope);
  }
  double run() { return exe.run(main, scope, {}, {"loss"})[0].item<float>(); }

  ir::Program main, startup;
  ir::Builder b;
  Var loss;
  runtime::Scope scope;
  runtime::Executor exe;

 private:
  Var half_square(const Var& x) {
    const Var squared = b.op("square", {{"x", x}});
    return b.op("scale", {{"x", b.op("reduce_sum", {{"x", squared}})}}, {{"scale", 0.5}});
  }
};

double loss_after(const OptimizerDef& def, double lr, int steps) {
  Squares s;
  make(def.op, {{"lr", lr}})->minimize(s.loss);
  s.start();
  double loss = 0;
  for (int i = 0; i < steps; ++i) loss = s.run();
  EXPECT_EQ(s.scope.get("@step@").item<int64_t>(), steps);
  return loss;
}

TEST(Optimizer, EveryOneTrains) {
  for (const OptimizerDef* def : optimizer_defs()) {
    SCOPED_TRACE(def->op);
    double best = INFINITY;
    for (const double lr : {0.05, 0.2, 1.0, 20.0}) best = std::min(best, loss_after(*def, lr, 50));
    EXPECT_LT(best, loss_after(*def, 0.1, 1) / 4);
  }
}

TEST(Optimizer, EveryOneUpdatesEachParameterByItsOpAndStates) {
  for (const OptimizerDef* def : optimizer_defs()) {
    SCOPED_TRACE(def->op);
    Squares s;
    make(def->op)->minimize(s.loss);
    int updates = 0;
    for (const ir::Op& op : s.main.ops())
      if (op.type() == def->op && op.role == ir::Role::kUpdate) ++updates;
    EXPECT_EQ(updates, 2);
    EXPECT_TRUE(s.main.var("learning_rate_0").persistable);
    for (const StateDef& state : def->states) {
      const std::string name = "a_" + state.slot + (state.scalar ? "_acc_0" : "_0");
      EXPECT_TRUE(s.main.var(name).persistable);
      EXPECT_NE(s.startup.find(name), nullptr);
    }
    EXPECT_EQ(ir::to_text(ir::parse_text(ir::to_text(s.main))), ir::to_text(s.main));
  }
}

// A strategy says that only every second step is applied; the step is counted all the same.
TEST(Optimizer, UpdatesOnlyWhereTheGradientsAreReady) {
  Squares s;
  Momentum optimizer({.lr = 0.1, .clip = clip_by_global_norm(1)});
  const std::vector<ParamGrad> gradients = optimizer.backward(s.loss);
  const auto whole = [&](const char* op, const Var& x, double y) {
    const Var number =
        s.b.op("fill", {}, {{"shape", Shape{1}}, {"dtype", DType::kI64}, {"value", y}});
    return Var(s.b.op(op, {{"x", x}, {"y", number}}));
  };
  const Var odd = whole("equal", whole("elementwise_mod", s.b.step(), 2), 1);
  ir::Rewriter(s.main).edit_training().ready = odd.name();
  optimizer.apply_gradients(gradients);
  for (const ir::Op& op : s.main.ops())
    if (op.type() == "momentum" || op.type() == "squared_l2_norm") {
      EXPECT_EQ(op.guard, odd.name());
    }
  s.start();
  std::vector<double> losses;
  for (int i = 0; i < 4; ++i) losses.push_back(s.run());
  EXPECT_EQ(s.scope.get("@step@").item<int64_t>(), 4);
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_LT(losses[2], losses[1]);
  EXPECT_EQ(losses[2], losses[3]);
}

// ---- by name ----

std::string program_of(const std::unique_ptr<Optimizer>& o) {
  Squares s;
  o->minimize(s.loss, {}, std::source_location());
  return ir::to_text(s.main) + ir::to_text(s.startup);
}

template <class O>
std::string program_of(const typename O::Options& o) {
  return program_of(std::unique_ptr<Optimizer>(std::make_unique<O>(o)));
}

TEST(MakeOptimizer, IsLikeTheClass) {
  EXPECT_EQ(program_of(make("sgd")), program_of<Sgd>({}));
  EXPECT_EQ(program_of(make("momentum", {{"lr", 1}, {"mu", 0.5}, {"nesterov", true}, {"l2", 0.1}})),
            program_of<Momentum>({.lr = 1.0, .mu = 0.5, .nesterov = true, .l2 = 0.1}));
  EXPECT_EQ(program_of(make("adam", {{"beta1", 0.8}}, {.clip = clip_by_norm(1)})),
            program_of<Adam>({.beta1 = 0.8, .clip = clip_by_norm(1)}));
  EXPECT_EQ(program_of(make("adagrad", {{"initial", 0.5}})), program_of<Adagrad>({.initial = 0.5}));
  EXPECT_EQ(program_of(make("adamw", {{"decay", 0.2}, {"without_decay", ir::Strings{"a"}}})),
            program_of<AdamW>(
                {.decay = 0.2, .with_decay = [](const std::string& name) { return name != "a"; }}));
  EXPECT_EQ(program_of(make("lamb", {{"exclude", ir::Strings{"b"}}})),
            program_of<Lamb>({.exclude = {"b"}}));
}

TEST(MakeOptimizer, TakesASchedule) {
  Squares s;
  const auto sgd = make("sgd", {}, {.schedule = piecewise(s.b, {1}, {0.5, 0.25})});
  sgd->minimize(s.loss);
  s.start();
  EXPECT_EQ(s.exe.run(s.main, s.scope, {}, {sgd->learning_rate().name()})[0].item<float>(), 0.5f);
}

TEST(MakeOptimizer, RefusesByName) {
  const auto refuses = [](const char* name, const ir::Attrs& options,
                          std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] { make(name, options); });
  };
  refuses("adm", {}, {"no optimizer 'adm'", "did you mean", "'adam'"});
  refuses("adam", {{"beta", 0.5}}, {"adam has no option 'beta'", "'beta1'"});
  refuses("adam", {{"beta1", "high"}}, {"adam", "'beta1'", "float", "high"});
  refuses("adam", {{"beta1", 1.5}}, {"adam", "beta1 must be in [0, 1), got 1.5"});
  refuses("adam", {{"epsilon", 0.0}}, {"adam", "epsilon must be greater than 0, got 0"});
  refuses("sgd", {{"lr", "fast"}}, {"sgd", "'lr'", "number"});
  refuses("sgd", {{"without_decay", ir::Strings{"a"}}}, {"sgd has no option 'without_decay'"});
}

TEST(OptimizerDef, EveryOptionIsDocumented) {
  for (const OptimizerDef* def : optimizer_defs()) {
    EXPECT_FALSE(def->doc.empty()) << def->op;
    for (const OptionDef& option : def->options)
      EXPECT_FALSE(option.doc.empty()) << def->op << " " << option.name;
    for (const AcceptedArgument& argument : def->accepted)
      EXPECT_FALSE(argument.reason.empty()) << def->op << " " << argument.name;
  }
}

TEST(OptimizerDef, RangesSayWhatTheyAllow) {
  EXPECT_EQ(positive().text(), "greater than 0");
  EXPECT_EQ(fraction().text(), "in [0, 1)");
  EXPECT_TRUE(fraction().contains(0));
  EXPECT_FALSE(fraction().contains(1));
  EXPECT_FALSE(positive().contains(0));
  EXPECT_FALSE(fraction().contains(NAN));
  EXPECT_TRUE(Range{}.contains(-1e300));
}

TEST(Optimizer, PowersStartAtTheirBetas) {
  Squares s;
  Adam({.beta1 = 0.7, .beta2 = 0.8}).minimize(s.loss);
  s.start();
  EXPECT_FLOAT_EQ(s.scope.get("b_beta1_pow_acc_0").item<float>(), 0.7f);
  EXPECT_FLOAT_EQ(s.scope.get("b_beta2_pow_acc_0").item<float>(), 0.8f);
  s.run();
  EXPECT_FLOAT_EQ(s.scope.get("b_beta1_pow_acc_0").item<float>(), 0.49f);
}

// The gradient is the parameter itself, so one step of SGD multiplies it by a known factor.
float factor_after_step(Squares& s, const std::string& name) {
  const float before = s.scope.get(name).data<float>()[0];
  s.run();
  return s.scope.get(name).data<float>()[0] / before;
}

TEST(Optimizer, LearningRateFactorOfAParameter) {
  for (const std::string name : {"a", "b"}) {
    Squares s({{"lr", 0.5}}, {{"lr", 2}});
    Sgd({.lr = 0.1}).minimize(s.loss);
    s.start();
    EXPECT_NEAR(factor_after_step(s, name), name == "a" ? 0.95f : 0.8f, 1e-6);
  }
}

TEST(Optimizer, DecayIsTheParametersOwnOrTheOptimizers) {
  Squares s({{"l1", 0.3}}, {});
  Sgd({.lr = 0.1, .l2 = 0.5}).minimize(s.loss);
  s.start();
  const float a = s.scope.get("a").data<float>()[0], b = s.scope.get("b").data<float>()[0];
  s.run();
  EXPECT_NEAR(s.scope.get("a").data<float>()[0], a - 0.1f * (a + 0.3f), 1e-6);
  EXPECT_NEAR(s.scope.get("b").data<float>()[0], b - 0.1f * (b + 0.5f * b), 1e-6);
}

TEST(Optimizer, ExclusionFromDecay) {
  const auto with_decay = [](const std::string& param, Optimizer& o) {
    Squares s;
    o.minimize(s.loss);
    for (const ir::Op& op : s.main.ops())
      if (op.role == ir::Role::kUpdate && op.reads(param) && op.type() != "increment")
        return op.attr<ir::Floats>("with_decay").at(0);
    return -1.0;
  };
  LarsMomentum lars({.exclude = {"a"}});
  EXPECT_EQ(with_decay("a", lars), 0.0);
  EXPECT_EQ(with_decay("b", lars), 1.0);
  Lamb lamb({.exclude = {"b"}});
  EXPECT_EQ(with_decay("a", lamb), 1.0);
  EXPECT_EQ(with_decay("b", lamb), 0.0);
  AdamW adamw({.with_decay = [](const std::string& name) { return name == "b"; }});
  EXPECT_EQ(with_decay("a", adamw), 0.0);
  EXPECT_EQ(with_decay("b", adamw), 1.0);
}

TEST(Optimizer, BackwardAndApplyAreMinimize) {
  Squares one, two;
  Momentum a({.lr = 0.1}), b({.lr = 0.1});
  a.minimize(one.loss);
  const std::vector<ParamGrad> gradients = b.backward(two.loss);
  EXPECT_EQ(gradients.size(), 2u);
  b.apply_gradients(gradients);
  for (Squares* s : {&one, &two}) s->start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(one.run(), two.run());
}

TEST(Optimizer, OnlyTheParametersAskedFor) {
  Squares s;
  const auto gradients = Sgd({.lr = 0.1}).minimize(s.loss, {.parameters = {"b"}});
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_EQ(gradients[0].param.name(), "b");
  s.start();
  EXPECT_EQ(factor_after_step(s, "a"), 1.0f);
}

TEST(Optimizer, TwoInOneProgramCountOneStep) {
  Squares s;
  Sgd first({.lr = 0.1});
  const std::vector<ParamGrad> gradients = first.backward(s.loss);
  first.apply_gradients({gradients[0]});
  Adam second({.lr = piecewise(s.b, {1}, {0.5, 0.25})});
  second.apply_gradients({gradients[1]});
  EXPECT_EQ(s.main.ops().back().type(), "increment");
  s.start();
  const Tensor rate = s.exe.run(s.main, s.scope, {}, {second.learning_rate().name()})[0];
  EXPECT_EQ(rate.item<float>(), 0.5f);
  EXPECT_EQ(s.scope.get("@step@").item<int64_t>(), 1);
}

TEST(Optimizer, TwoForOneParameterHaveStatesOfTheirOwn) {
  Squares s;
  Momentum one({.lr = 0.1}), two({.lr = 0.2});
  const std::vector<ParamGrad> gradients = one.backward(s.loss);
  one.apply_gradients(gradients);
  two.apply_gradients(gradients);
  EXPECT_NE(s.main.find("a_velocity_0"), nullptr);
  EXPECT_NE(s.main.find("a_velocity_1"), nullptr);
  EXPECT_NE(s.main.find("learning_rate_1"), nullptr);
}

TEST(Optimizer, TheLearningRateIsAVariableToSet) {
  Squares s;
  Sgd({.lr = 0.1}).minimize(s.loss);
  s.start();
  s.scope.set("learning_rate_0", filled({1}, 0.5f));
  EXPECT_NEAR(factor_after_step(s, "a"), 0.5f, 1e-6);
}

TEST(Optimizer, RefusesALearningRateThatIsNotOneNumber) {
  Squares s;
  expect_error(Error::Kind::kInvalidArgument, {"sgd", "f32[1]", "'a'", "f32[3,4]"},
               [&] { Sgd({.lr = s.b.var("a")}).minimize(s.loss); });
  expect_error(Error::Kind::kInvalidArgument, {"sgd", "f32[1]"}, [&] {
    Sgd({.lr = Var()}).apply_gradients({{s.b.var("a"), s.b.var("a")}});
  });
  expect_error(Error::Kind::kInvalidArgument, {"no gradient"},
               [] { Sgd({.lr = 0.1}).apply_gradients({}); });
}

TEST(Optimizer, ErrorsPointAtTheCallOfMinimize) {
  Squares s(ir::Attrs{{"lr", "fast"}});
  expect_error(Error::Kind::kInvalidArgument, {"'a'", "lr", "number"},
               [&] { Sgd({.lr = 0.1}).minimize(s.loss); });
  Squares t;
  expect_error(Error::Kind::kInvalidArgument, {"optimizer_test.cc:", "adam", "epsilon"},
               [&] { Adam({.epsilon = 0.0}).minimize(t.loss); });
}

// ---- clipping: the gradients of `a` and `b` are fed ----

class Clipping {
 public:
  explicit Clipping(const Clip& clip, const ir::Attrs& attrs_b = {}) : b(main, startup) {
    const Var x = b.parameter({.name = "a", .shape = {2}});
    const Var y = b.parameter({.name = "b", .shape = {2}, .attrs = attrs_b});
    Sgd opt({.lr = 1.0, .clip = clip});
    opt.apply_gradients({{x, b.data("da", f32, {2})}, {y, b.data("db", f32, {2})}});
    ir::verify(main);
    exe.run(startup, scope);
  }
  // The gradients after clipping, as the parameters (which start at 0) saw them.
  std::vector<float> run(const std::vector<float>& da, const std::vector<float>& db) {
    for (const char* name : {"a", "b"}) scope.set(name, filled({2}, 0.0f));
    exe.run(main, scope, {{"da", Tensor::of<float>({2}, da)}, {"db", Tensor::of<float>({2}, db)}});
    std::vector<float> out;
    for (const char* name : {"a", "b"}) {
      const Tensor value = scope.get(name);
      for (const float v : value.data<float>()) out.push_back(-v);
    }
    return out;
  }

  ir::Program main, startup;
  ir::Builder b;
  runtime::Scope scope;
  runtime::Executor exe;
};

void expect_values(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST(Clip, ByValue) {
  Clipping c(clip_by_value(-0.5, 1.0));
  expect_values(c.run({-3, 0.2f}, {0.9f, 7}), {-0.5f, 0.2f, 0.9f, 1.0f});
}

TEST(Clip, ByNormOfEach) {
  Clipping c(clip_by_norm(1.0));
  expect_values(c.run({3, 4}, {0.3f, 0.4f}), {0.6f, 0.8f, 0.3f, 0.4f});
}

TEST(Clip, ByGlobalNorm) {
  Clipping c(clip_by_global_norm(1.3));
  expect_values(c.run({3, 4}, {0, 12}), {0.3f, 0.4f, 0.0f, 1.2f});
  expect_values(c.run({0.3f, 0.4f}, {0, 0.1f}), {0.3f, 0.4f, 0.0f, 0.1f});
}

TEST(Clip, LeavesOutWhoSaysSo) {
  const ir::Attrs out = {{"need_clip", false}};
  expect_values(Clipping(clip_by_global_norm(1.0), out).run({3, 4}, {0, 12}), {0.6f, 0.8f, 0, 12});
  expect_values(Clipping(clip_by_norm(1.0), out).run({3, 4}, {0, 12}), {0.6f, 0.8f, 0, 12});
  expect_values(Clipping(clip_by_value(-1, 1), out).run({3, 4}, {0, 12}), {1, 1, 0, 12});
}

TEST(Clip, RefusesBoundsThatAreNone) {
  expect_error(Error::Kind::kInvalidArgument, {"clip_by_norm", "-1"}, [] { clip_by_norm(-1); });
  expect_error(Error::Kind::kInvalidArgument, {"clip_by_global_norm", "0"},
               [] { clip_by_global_norm(0); });
  expect_error(Error::Kind::kInvalidArgument, {"clip_by_value", "2", "1"},
               [] { clip_by_value(2, 1); });
}

// ---- sparse gradients, from an embedding ----

// Trains a table by the mean of the rows that ids pick, and returns it after some steps.
Tensor train_table(bool sparse, Optimizer& opt) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const Var table = b.parameter({.name = "table",
                                 .shape = {10, 4},
                                 .init = {"uniform", {{"low", -1.0}, {"high", 1.0}, {"seed", 7}}}});
  const Var rows =
      b.op("embedding", {{"ids", b.data("ids", i64, {6})}, {"w", table}}, {{"sparse", sparse}});
  opt.minimize(b.op("reduce_sum", {{"x", b.op("square", {{"x", rows}})}}));
  runtime::Scope scope;
  runtime::Executor exe;
  exe.run(startup, scope);
  for (int i = 0; i < 3; ++i)
    exe.run(main, scope, {{"ids", Tensor::of<int64_t>({6}, {3, 1, 3, 8, 3, 1})}});
  return scope.get("table");
}

TEST(Sparse, SameAsDenseWhereOnlyTouchedRowsMove) {
  for (const Clip& clip :
       {Clip{}, clip_by_value(-0.5, 0.5), clip_by_norm(1.0), clip_by_global_norm(1.0)}) {
    Sgd sgd({.lr = 0.1, .clip = clip});
    testing::expect_close(train_table(true, sgd), train_table(false, sgd), 1e-5, "sgd");
    Adagrad adagrad({.lr = 0.1, .clip = clip});
    testing::expect_close(train_table(true, adagrad), train_table(false, adagrad), 1e-5, "adagrad");
    // The same ids in every step, so that lazy and full updates agree.
    Adam adam({.lr = 0.1, .clip = clip});
    testing::expect_close(train_table(true, adam), train_table(false, adam), 1e-5, "adam");
  }
}

TEST(Sparse, RefusedWhereNormsAreNeeded) {
  Lamb lamb({.lr = 0.1});
  expect_error(Error::Kind::kInvalidArgument, {"lamb", "sparse"}, [&] { train_table(true, lamb); });
}

}  // namespace
}  // namespace fleetx::optim
