#include "fleetx/optim/schedule.h"

#include <cmath>
#include <numbers>

#include "fleetx/ir/rewriter.h"

namespace fleetx::optim {
namespace {

// A little arithmetic on one number. It is done in double, so that multiples of the step count fall
// where they belong after millions of steps. Schedules belong to the update: a test program has
// none.
class Scalar {
 public:
  // The step counter.
  explicit Scalar(ir::Builder& b)
      : Scalar(b, b.op("cast", {{"x", b.step()}}, {{"dtype", DType::kF64}})) {}

  Scalar times(double factor, double plus = 0.0) const {
    return unary("scale", {{"scale", factor}, {"bias", plus}});
  }
  Scalar pow(double exponent) const { return unary("pow", {{"factor", exponent}}); }
  Scalar at_most(double limit) const { return unary("clip", {{"min", -1e300}, {"max", limit}}); }
  Scalar at_least(double limit) const { return unary("clip", {{"min", limit}, {"max", 1e300}}); }
  // floor and ceil of a whole number divided by `steps`; half a step away from where they jump.
  Scalar floor_of(double steps) const { return times(1 / steps, 0.5 / steps).apply("floor"); }
  Scalar ceil_of(double steps) const { return times(1 / steps, -0.5 / steps).apply("ceil"); }
  Scalar apply(const char* function) const { return unary(function, {}); }
  Scalar with(const char* op, const Scalar& other) const {
    return {*b_, b_->op(op, {{"x", v_}, {"y", other.v_}})};
  }
  Var rate() const {
    Var rate = unary("cast", {{"dtype", DType::kF32}}).v_;
    count_step(*b_);
    return rate;
  }

 private:
  Scalar(ir::Builder& b, Var v) : b_(&b), v_(std::move(v)) {}
  Scalar unary(const char* op, ir::Attrs attrs) const {
    return {*b_, b_->op(op, {{"x", v_}}, std::move(attrs))};
  }
  ir::Builder* b_;
  Var v_;
};

void check_steps(const char* what, int64_t steps) {
  check_arg(steps > 0, what, ": the number of steps must be positive, got ", steps);
}

Scalar decay_exponent(ir::Builder& b, const char* what, const DecayOptions& o) {
  check_steps(what, o.steps);
  const auto steps = static_cast<double>(o.steps);
  return o.staircase ? Scalar(b).floor_of(steps) : Scalar(b).times(1 / steps);
}

Var constant_op(ir::Builder& b, DType dtype, double value) {
  return b.op("fill", {}, {{"shape", Shape{1}}, {"dtype", dtype}, {"value", value}});
}

}  // namespace

void count_step(ir::Builder& b) {
  const Var step = b.step();
  const auto role = b.in_role(ir::Role::kUpdate);  // a program for testing does not count
  ir::Rewriter rw(b.main());
  for (auto op = rw.begin(); op != rw.end(); ++op)
    if (op->writes(step.name())) return rw.move(op, rw.end());
  b.op("increment", {{"x", step}}, {{"value", 1.0}}, {{"out", step}});
}

Var constant(ir::Builder& b, double lr) {
  const auto role = b.in_role(ir::Role::kUpdate);
  return constant_op(b, DType::kF32, lr);
}

Var piecewise(ir::Builder& b, std::vector<int64_t> boundaries, std::vector<double> values) {
  const auto role = b.in_role(ir::Role::kUpdate);
  Var rate = b.op("piecewise", {{"x", b.step()}},
                  {{"boundaries", ir::Floats(boundaries.begin(), boundaries.end())},
                   {"values", std::move(values)}});
  count_step(b);
  return rate;
}

Var exponential(ir::Builder& b, double lr, DecayOptions o) {
  const auto role = b.in_role(ir::Role::kUpdate);
  check_arg(o.rate > 0, "exponential: the rate must be positive, got ", o.rate);
  return decay_exponent(b, "exponential", o).times(std::log(o.rate)).apply("exp").times(lr).rate();
}

Var step_decay(ir::Builder& b, double lr, int64_t every, double factor) {
  return exponential(b, lr, {.steps = every, .rate = factor, .staircase = true});
}

Var natural_exp(ir::Builder& b, double lr, DecayOptions o) {
  const auto role = b.in_role(ir::Role::kUpdate);
  return decay_exponent(b, "natural_exp", o).times(-o.rate).apply("exp").times(lr).rate();
}

Var inverse_time(ir::Builder& b, double lr, DecayOptions o) {
  const auto role = b.in_role(ir::Role::kUpdate);
  return decay_exponent(b, "inverse_time", o).times(o.rate, 1.0).pow(-1.0).times(lr).rate();
}

Var polynomial(ir::Builder& b, double lr, PolynomialOptions o) {
  const auto role = b.in_role(ir::Role::kUpdate);
  check_steps("polynomial", o.steps);
  const auto steps = static_cast<double>(o.steps);
  const Scalar step(b);
  // What is left of the way, 1 at the start and exactly 0 at the end: a power of less than 0 would
  // not be a number.
  const auto left = [&] {
    if (!o.cycle) return step.at_most(steps).times(-1.0, steps).times(1 / steps);
    const Scalar end = step.ceil_of(steps).at_least(1.0).times(steps);
    return end.with("elementwise_sub", step).with("elementwise_div", end);
  };
  return left().pow(o.power).times(lr - o.end, o.end).rate();
}

Var cosine(ir::Builder& b, double lr, int64_t steps_per_epoch, int64_t epochs) {
  const auto role = b.in_role(ir::Role::kUpdate);
  check_steps("cosine", steps_per_epoch);
  check_steps("cosine", epochs);
  return Scalar(b)
      .floor_of(static_cast<double>(steps_per_epoch))
      .times(std::numbers::pi / static_cast<double>(epochs))
      .apply("cos")
      .times(lr / 2, lr / 2)
      .rate();
}

Var noam(ir::Builder& b, int64_t width, int64_t warm_up_steps, double lr) {
  const auto role = b.in_role(ir::Role::kUpdate);
  check_steps("noam", warm_up_steps);
  const Scalar n = Scalar(b).times(1.0, 1.0);
  const Scalar rising = n.times(std::pow(static_cast<double>(warm_up_steps), -1.5));
  return n.pow(-0.5)
      .with("elementwise_min", rising)
      .times(lr / std::sqrt(static_cast<double>(width)))
      .rate();
}

Var warm_up(const Var& after, int64_t steps, double start, double end) {
  check_steps("warm_up", steps);
  ir::Builder& b = after.builder();
  const auto role = b.in_role(ir::Role::kUpdate);
  const Var limit = constant_op(b, DType::kI64, static_cast<double>(steps));
  const Var warming = b.op("less_than", {{"x", b.step()}, {"y", limit}});
  const Var line = Scalar(b).times((end - start) / static_cast<double>(steps), start).rate();
  return b.op("where", {{"cond", warming}, {"x", line}, {"y", after}});
}

Var warm_up(ir::Builder& b, double after, int64_t steps, double start, double end) {
  return warm_up(constant(b, after), steps, start, end);
}

}  // namespace fleetx::optim
