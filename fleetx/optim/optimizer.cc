#include "fleetx/optim/optimizer.h"

#include <algorithm>

#include "fleetx/ir/rewriter.h"

namespace fleetx::optim {
namespace {

using ir::Var;

double attr_or(const ir::VarInfo& info, const char* name, double fallback) {
  const auto it = info.attrs.find(name);
  if (it == info.attrs.end()) return fallback;
  ir::Attr value = it->second;
  check_arg(ir::coerce(value, ir::AttrType::kFloat), "parameter '", info.name, "': attribute '",
            name, "' must be a number, got ", it->second);
  return value.as<double>();
}

bool wants_clip(const ir::VarInfo& info) {
  const auto it = info.attrs.find("need_clip");
  return it == info.attrs.end() || it->second.as<bool>();
}

// One op over all gradients measures the norm; the update ops multiply by the factor, so clipping
// needs no pass of its own over the gradients.
Var global_norm_factor(ir::Builder& b, const std::vector<ParamGrad>& gradients, double max_norm) {
  std::vector<Var> clipped;
  for (const ParamGrad& pair : gradients)
    if (wants_clip(pair.param.info())) clipped.push_back(pair.grad);
  if (clipped.empty()) return {};
  const Var squared = b.op("squared_l2_norm", {{"xs", clipped}});
  return b.op("global_norm_scale", {{"x", squared}}, {{"max_norm", max_norm}});
}

Var clip_alone(ir::Builder& b, const ParamGrad& pair, const Clip& clip) {
  if (!wants_clip(pair.param.info())) return pair.grad;
  if (clip.kind == Clip::Kind::kNorm)
    return b.op("clip_by_norm", {{"x", pair.grad}}, {{"max_norm", clip.max_norm}});
  const bool dense = pair.grad.type().kind == ir::VarKind::kDense;
  return b.op(dense ? "clip" : "clip_rows", {{"x", pair.grad}},
              {{"min", clip.low}, {"max", clip.high}});
}

// Once per program, after all updates of all optimizers: schedules and random ops of this step have
// read it.
void increment_step(ir::Builder& b) {
  const Var step = b.step();
  ir::Rewriter rw(b.main());
  for (auto op = rw.begin(); op != rw.end(); ++op)
    if (op->writes(step.name())) return rw.move(op, rw.end());
  b.op("increment", {{"x", step}}, {{"value", 1.0}}, {{"out", step}});
}

std::function<bool(const std::string&)> unless_contains(std::vector<std::string> parts) {
  return [parts = std::move(parts)](const std::string& name) {
    return std::none_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return name.find(part) != std::string::npos;
    });
  };
}

std::function<bool(const std::string&)> unless_ends_with(std::vector<std::string> parts) {
  return [parts = std::move(parts)](const std::string& name) {
    return std::none_of(parts.begin(), parts.end(),
                        [&](const std::string& part) { return name.ends_with(part); });
  };
}

}  // namespace

Clip clip_by_value(double low, double high) {
  check_arg(low < high, "clip_by_value: the lower bound ", low, " must be below ", high);
  return {.kind = Clip::Kind::kValue, .low = low, .high = high};
}

Clip clip_by_norm(double max_norm) {
  check_arg(max_norm > 0, "clip_by_norm: the norm must be positive, got ", max_norm);
  return {.kind = Clip::Kind::kNorm, .max_norm = max_norm};
}

Clip clip_by_global_norm(double max_norm) {
  check_arg(max_norm > 0, "clip_by_global_norm: the norm must be positive, got ", max_norm);
  return {.kind = Clip::Kind::kGlobalNorm, .max_norm = max_norm};
}

std::vector<ParamGrad> Optimizer::minimize(const Var& loss,
                                           const autograd::BackwardOptions& options,
                                           std::source_location where) {
  std::vector<ParamGrad> gradients = backward(loss, options);
  apply_gradients(gradients, where);
  return gradients;
}

std::vector<ParamGrad> Optimizer::backward(const Var& loss,
                                           const autograd::BackwardOptions& options) const {
  return autograd::append_backward(loss, options);
}

Var Optimizer::make_learning_rate(ir::Builder& b) {
  if (const double* number = std::get_if<double>(&common_.lr))
    return b.state(b.unique_name("learning_rate"), DType::kF32, {1}, *number);
  const Var& schedule = std::get<Var>(common_.lr);
  check_arg(schedule.defined() && schedule.shape() == Shape{1} && schedule.dtype() == DType::kF32,
            rule_.op, ": the learning rate must be f32[1]",
            schedule.defined() ? str(", '", schedule.name(), "' is ", schedule.type()) : "");
  return schedule;
}

void Optimizer::apply_gradients(const std::vector<ParamGrad>& gradients,
                                std::source_location where) {
  check_arg(!gradients.empty(), rule_.op, ": there is no gradient to apply");
  ir::Builder& b = gradients.front().param.builder();
  const auto at = b.at(ir::Loc::of(where));
  const auto role = b.in_role(ir::Role::kUpdate);
  lr_var_ = make_learning_rate(b);
  Var factor;
  if (common_.clip.kind == Clip::Kind::kGlobalNorm)
    factor = global_norm_factor(b, gradients, common_.clip.max_norm);
  for (ParamGrad pair : gradients) {
    if (common_.clip.kind == Clip::Kind::kValue || common_.clip.kind == Clip::Kind::kNorm)
      pair.grad = clip_alone(b, pair, common_.clip);
    update(b, pair, wants_clip(pair.param.info()) ? factor : Var());
  }
  increment_step(b);
}

void Optimizer::update(ir::Builder& b, const ParamGrad& pair, const Var& scale) const {
  const ir::VarInfo& info = pair.param.info();
  std::vector<ir::Arg> args{
      {"param", pair.param}, {"grad", pair.grad}, {"lr", lr_var_}, {"scale", scale}};
  std::vector<ir::Dest> dests{{"param_out", pair.param}};
  for (const State& s : rule_.states) {
    const Shape shape = s.scalar ? Shape{1} : pair.param.shape();
    // A second optimizer of the same parameter has states of its own: _1.
    const std::string name =
        b.unique_name(info.name + "_" + s.slot + (s.slot.ends_with("_pow") ? "_acc" : ""));
    const Var state = b.state(name, DType::kF32, shape, s.initial);
    args.emplace_back(s.slot, state);
    dests.emplace_back(s.slot + "_out", state);
  }
  ir::Attrs attrs = rule_.attrs;
  const double factor = attr_or(info, "lr", 1.0);
  const double l1 = attr_or(info, "l1", info.attrs.contains("l2") ? 0 : common_.l1);
  const double l2 = attr_or(info, "l2", info.attrs.contains("l1") ? 0 : common_.l2);
  attrs.emplace("lr_factors", ir::Floats{factor});
  attrs.emplace("l1", ir::Floats{l1});
  attrs.emplace("l2", ir::Floats{l2});
  if (rule_.with_decay)
    attrs.emplace("with_decay", ir::Floats{rule_.with_decay(info.name) ? 1.0 : 0.0});
  b.op(rule_.op, args, std::move(attrs), dests);
}

Sgd::Sgd(SgdOptions o) : Optimizer({"sgd"}, {o.lr, o.l1, o.l2, o.clip}) {}

Momentum::Momentum(MomentumOptions o)
    : Optimizer({"momentum", {{"mu", o.mu}, {"nesterov", o.nesterov}}, {{"velocity"}}},
                {o.lr, o.l1, o.l2, o.clip}) {}

Adam::Adam(AdamOptions o)
    : Optimizer(
          {"adam",
           {{"beta1", o.beta1}, {"beta2", o.beta2}, {"epsilon", o.epsilon}},
           {{"moment1"}, {"moment2"}, {"beta1_pow", true, o.beta1}, {"beta2_pow", true, o.beta2}}},
          {o.lr, o.l1, o.l2, o.clip}) {}

Adamax::Adamax(AdamOptions o)
    : Optimizer(
          {"adamax",
           {{"beta1", o.beta1}, {"beta2", o.beta2}, {"epsilon", o.epsilon}},
           {{"moment"}, {"inf_norm"}, {"beta1_pow", true, o.beta1}, {"beta2_pow", true, o.beta2}}},
          {o.lr, o.l1, o.l2, o.clip}) {}

AdamW::AdamW(AdamWOptions o)
    : Optimizer(
          {"adamw",
           {{"beta1", o.beta1}, {"beta2", o.beta2}, {"epsilon", o.epsilon}, {"coeff", o.decay}},
           {{"moment1"}, {"moment2"}, {"beta1_pow", true, o.beta1}, {"beta2_pow", true, o.beta2}},
           o.with_decay},
          {o.lr, 0, 0, o.clip}) {}

Adagrad::Adagrad(AdagradOptions o)
    : Optimizer({"adagrad", {{"epsilon", o.epsilon}}, {{"moment", false, o.initial}}},
                {o.lr, o.l1, o.l2, o.clip}) {}

RmsProp::RmsProp(RmsPropOptions o)
    : Optimizer({"rmsprop",
                 {{"rho", o.rho},
                  {"epsilon", o.epsilon},
                  {"momentum", o.momentum},
                  {"centered", o.centered}},
                 {{"mean_square"}, {"moment"}, {"mean_grad"}}},
                {o.lr, o.l1, o.l2, o.clip}) {}

Adadelta::Adadelta(AdadeltaOptions o)
    : Optimizer({"adadelta",
                 {{"rho", o.rho}, {"epsilon", o.epsilon}},
                 {{"avg_squared_grad"}, {"avg_squared_update"}}},
                {o.lr, o.l1, o.l2, o.clip}) {}

Ftrl::Ftrl(FtrlOptions o)
    : Optimizer({"ftrl",
                 {{"shrink_l1", o.shrink_l1}, {"shrink_l2", o.shrink_l2}, {"lr_power", o.lr_power}},
                 {{"squared"}, {"linear"}}},
                {o.lr, 0, 0, o.clip}) {}

LarsMomentum::LarsMomentum(LarsMomentumOptions o)
    : Optimizer({"lars_momentum",
                 {{"mu", o.mu},
                  {"lars_coeff", o.lars_coeff},
                  {"lars_weight_decay", o.lars_weight_decay},
                  {"epsilon", o.epsilon}},
                 {{"velocity"}},
                 unless_contains(o.exclude)},
                {o.lr, 0, 0, o.clip}) {}

Lamb::Lamb(LambOptions o)
    : Optimizer(
          {"lamb",
           {{"beta1", o.beta1},
            {"beta2", o.beta2},
            {"epsilon", o.epsilon},
            {"weight_decay", o.weight_decay}},
           {{"moment1"}, {"moment2"}, {"beta1_pow", true, o.beta1}, {"beta2_pow", true, o.beta2}},
           unless_ends_with(o.exclude)},
          {o.lr, 0, 0, o.clip}) {}

}  // namespace fleetx::optim
