#include "fleetx/optim/schedule.h"

#include <cmath>
#include <numbers>

namespace fleetx::optim {
namespace {

// A little arithmetic on f32[1]. Schedules belong to the update: a test program has none.
class Scalar {
 public:
  Scalar(ir::Builder& b, Var v) : b_(&b), v_(std::move(v)) {}

  Scalar times(double factor, double plus = 0.0) const {
    return unary("scale", {{"scale", factor}, {"bias", plus}});
  }
  Scalar pow(double exponent) const { return unary("pow", {{"factor", exponent}}); }
  Scalar at_most(double limit) const { return unary("clip", {{"min", -3e38}, {"max", limit}}); }
  Scalar at_least(double limit) const { return unary("clip", {{"min", limit}, {"max", 3e38}}); }
  Scalar apply(const char* function) const { return unary(function, {}); }
  Scalar with(const char* op, const Scalar& other) const {
    return {*b_, b_->op(op, {{"x", v_}, {"y", other.v_}})};
  }
  const Var& var() const { return v_; }

 private:
  Scalar unary(const char* op, ir::Attrs attrs) const {
    return {*b_, b_->op(op, {{"x", v_}}, std::move(attrs))};
  }
  ir::Builder* b_;
  Var v_;
};

Scalar step_of(ir::Builder& b) {
  return {b, b.op("cast", {{"x", b.step()}}, {{"dtype", DType::kF32}})};
}

void check_steps(const char* what, int64_t steps) {
  check_arg(steps > 0, what, ": the number of steps must be positive, got ", steps);
}

Scalar decay_exponent(ir::Builder& b, const char* what, const DecayOptions& o) {
  check_steps(what, o.steps);
  const Scalar ratio = step_of(b).times(1.0 / static_cast<double>(o.steps));
  return o.staircase ? ratio.apply("floor") : ratio;
}

}  // namespace

Var piecewise(ir::Builder& b, std::vector<int64_t> boundaries, std::vector<double> values) {
  const auto role = b.in_role(ir::Role::kUpdate);
  return b.op("piecewise", {{"x", b.step()}},
              {{"boundaries", ir::Floats(boundaries.begin(), boundaries.end())},
               {"values", std::move(values)}});
}

Var exponential(ir::Builder& b, double lr, DecayOptions o) {
  const auto role = b.in_role(ir::Role::kUpdate);
  check_arg(o.rate > 0, "exponential: the rate must be positive, got ", o.rate);
  return decay_exponent(b, "exponential", o).times(std::log(o.rate)).apply("exp").times(lr).var();
}

Var natural_exp(ir::Builder& b, double lr, DecayOptions o) {
  const auto role = b.in_role(ir::Role::kUpdate);
  return decay_exponent(b, "natural_exp", o).times(-o.rate).apply("exp").times(lr).var();
}

Var inverse_time(ir::Builder& b, double lr, DecayOptions o) {
  const auto role = b.in_role(ir::Role::kUpdate);
  return decay_exponent(b, "inverse_time", o).times(o.rate, 1.0).pow(-1.0).times(lr).var();
}

Var polynomial(ir::Builder& b, double lr, PolynomialOptions o) {
  const auto role = b.in_role(ir::Role::kUpdate);
  check_steps("polynomial", o.steps);
  const auto steps = static_cast<double>(o.steps);
  const Scalar step = step_of(b);
  const Scalar ratio =
      o.cycle ? step.with("elementwise_div",
                          step.times(1.0 / steps).apply("ceil").at_least(1.0).times(steps))
              : step.at_most(steps).times(1.0 / steps);
  return ratio.times(-1.0, 1.0).pow(o.power).times(lr - o.end, o.end).var();
}

Var cosine(ir::Builder& b, double lr, int64_t steps_per_epoch, int64_t epochs) {
  const auto role = b.in_role(ir::Role::kUpdate);
  check_steps("cosine", steps_per_epoch);
  check_steps("cosine", epochs);
  return step_of(b)
      .times(1.0 / static_cast<double>(steps_per_epoch))
      .apply("floor")
      .times(std::numbers::pi / static_cast<double>(epochs))
      .apply("cos")
      .times(lr / 2, lr / 2)
      .var();
}

Var noam(ir::Builder& b, int64_t width, int64_t warm_up_steps, double lr) {
  const auto role = b.in_role(ir::Role::kUpdate);
  check_steps("noam", warm_up_steps);
  const Scalar n = step_of(b).times(1.0, 1.0);
  const Scalar rising = n.times(std::pow(static_cast<double>(warm_up_steps), -1.5));
  return n.pow(-0.5)
      .with("elementwise_min", rising)
      .times(lr / std::sqrt(static_cast<double>(width)))
      .var();
}

Var warm_up(const Var& after, int64_t steps, double start, double end) {
  check_steps("warm_up", steps);
  ir::Builder& b = after.builder();
  const auto role = b.in_role(ir::Role::kUpdate);
  const Scalar step = step_of(b);
  const Var limit = b.op("fill", {}, {{"shape", Shape{1}}, {"value", static_cast<double>(steps)}});
  const Var warming = b.op("less_than", {{"x", step.var()}, {"y", limit}});
  const Var line = step.times((end - start) / static_cast<double>(steps), start).var();
  return b.op("where", {{"cond", warming}, {"x", line}, {"y", after}});
}

Var warm_up(ir::Builder& b, double after, int64_t steps, double start, double end) {
  const auto role = b.in_role(ir::Role::kUpdate);
  const Var constant = b.op("fill", {}, {{"shape", Shape{1}}, {"value", after}});
  return warm_up(constant, steps, start, end);
}

}  // namespace fleetx::optim
