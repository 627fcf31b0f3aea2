#include "fleetx/optim/optimizer.h"

#include <algorithm>

#include "fleetx/ir/rewriter.h"
#include "fleetx/optim/schedule.h"

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

bool matches(const std::string& name, const std::string& part, Match match) {
  return match == Match::kEndsWith ? name.ends_with(part) : name.find(part) != std::string::npos;
}

// Is the parameter in no list of an option that excludes?
bool not_excluded(const OptimizerDef& def, const ir::Attrs& values, const std::string& name) {
  for (const OptionDef& option : def.options) {
    if (option.fallback.type() != ir::AttrType::kStrings) continue;
    for (const std::string& part : values.at(option.name).as<ir::Strings>())
      if (matches(name, part, option.match)) return false;
  }
  return true;
}

}  // namespace

Optimizer::Optimizer(const OptimizerDef& def, const ir::Attrs& values, Common common)
    : rule_{.op = def.op}, common_(std::move(common)) {
  for (const OptionDef& option : def.options)
    if (option.in_op()) rule_.attrs.emplace(option.attr, values.at(option.name));
  for (const StateDef& state : def.states) {
    const double initial = state.starts_at.empty() ? 0 : values.at(state.starts_at).as<double>();
    rule_.states.push_back({state.slot, state.scalar, initial});
  }
  if (def.with_decay)
    rule_.with_decay = [&def, values, given = common_.with_decay](const std::string& param) {
      return (given == nullptr || given(param)) && not_excluded(def, values, param);
    };
}

std::unique_ptr<Optimizer> make(std::string_view name, const ir::Attrs& options,
                                const MakeArgs& args) {
  struct Named final : Optimizer {
    Named(const OptimizerDef& def, const ir::Attrs& options, const MakeArgs& args)
        : Optimizer(def, values(def, options), common(def, options, args)) {}

    static bool is_common(const OptimizerDef& def, const std::string& option) {
      return option == "lr" || option == "l1" || option == "l2" ||
             (option == "without_decay" && def.with_decay);
    }
    static ir::Attrs values(const OptimizerDef& def, const ir::Attrs& options) {
      ir::Attrs out;
      for (const auto& [option, value] : options)
        if (!is_common(def, option)) out.emplace(option, def.checked(option, value));
      for (const OptionDef& option : def.options) out.emplace(option.name, option.fallback);
      return out;
    }
    static Common common(const OptimizerDef& def, const ir::Attrs& options, const MakeArgs& args) {
      Common c{.clip = args.clip};
      const auto number = [&](const char* option, double fallback) {
        const auto it = options.find(option);
        if (it == options.end()) return fallback;
        ir::Attr value = it->second;
        check_arg(ir::coerce(value, ir::AttrType::kFloat), def.op, ": option '", option,
                  "' must be a number, got ", it->second);
        return value.as<double>();
      };
      if (args.schedule.defined())
        c.lr = args.schedule;
      else
        c.lr = number("lr", def.lr);
      c.l1 = number("l1", 0);
      c.l2 = number("l2", 0);
      if (const auto it = options.find("without_decay"); it != options.end()) {
        ir::Attr names = it->second;
        check_arg(ir::coerce(names, ir::AttrType::kStrings), def.op,
                  ": option 'without_decay' must be a list of names, got ", it->second);
        c.with_decay = [without = names.as<ir::Strings>()](const std::string& param) {
          return std::find(without.begin(), without.end(), param) == without.end();
        };
      }
      return c;
    }
  };
  return std::make_unique<Named>(optimizer_def(name), options, args);
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
  // A copy of the program, on which something is tried, has the schedule, too.
  return b.main().find(schedule.name()) != nullptr ? b.var(schedule.name()) : schedule;
}

void Optimizer::apply_gradients(const std::vector<ParamGrad>& gradients,
                                std::source_location where) {
  check_arg(!gradients.empty(), rule_.op, ": there is no gradient to apply");
  ir::Builder& b = gradients.front().param.builder();
  const auto at = b.at(ir::Loc::of(where));
  const auto role = b.in_role(ir::Role::kUpdate);
  lr_var_ = make_learning_rate(b);
  update_all(b, gradients);
  count_step(b);
}

void Optimizer::update_all(ir::Builder& b, const std::vector<ParamGrad>& gradients) const {
  const std::string& ready = b.main().training().ready;
  const auto guard = b.under(ready.empty() ? Var() : b.var(ready));
  Var factor;
  if (common_.clip.kind == Clip::Kind::kGlobalNorm)
    factor = global_norm_factor(b, gradients, common_.clip.max_norm);
  for (ParamGrad pair : gradients) {
    if (common_.clip.kind == Clip::Kind::kValue || common_.clip.kind == Clip::Kind::kNorm)
      pair.grad = clip_alone(b, pair, common_.clip);
    update(b, pair, wants_clip(pair.param.info()) ? factor : Var());
    note_update(b, pair);
  }
}

void Optimizer::note_update(ir::Builder& b, const ParamGrad& pair) const {
  ir::Training& training = ir::Rewriter(b.main()).edit_training();
  training.step = b.step().name();
  for (ir::Training::Parameter& p : training.parameters) {
    if (p.name != pair.param.name()) continue;
    p.gradient = pair.grad.name();
    p.learning_rate = lr_var_.name();
  }
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
    const Var state =
        b.state(name, DType::kF32, shape, s.initial, s.scalar ? ir::Placement() : info.placement);
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

}  // namespace fleetx::optim
