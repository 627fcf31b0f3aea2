#include "fleetx/optimizers/lib/optimizer_def.h"

#include <algorithm>
#include <map>
#include <set>

#include "fleetx/base/names.h"

namespace fleetx::optim {
namespace {

using Registry = std::map<std::string, const OptimizerDef*, std::less<>>;

Registry& registry() {
  static Registry all;
  return all;
}

std::vector<std::string> option_names(const OptimizerDef& def) {
  std::vector<std::string> names = {"lr", "l1", "l2"};
  for (const OptionDef& option : def.options) names.push_back(option.name);
  return names;
}

void check_arguments(const OptimizerDef& def, const PythonClass& python) {
  std::set<std::string> known = {"learning_rate", "parameters",     "weight_decay",  "grad_clip",
                                 "name",          "parameter_list", "regularization"};
  for (const OptionDef& option : def.options) known.insert(option.python);
  for (const AcceptedArgument& argument : def.accepted) known.insert(argument.name);
  if (def.decay_filter.kind != DecayFilter::Kind::kNone) known.insert(def.decay_filter.python);
  for (const std::string& name : arguments_of(python))
    FLEETX_CHECK(known.contains(name), def.op, ": Python argument '", name, "' is not declared");
}

}  // namespace

bool Range::contains(double value) const {
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

std::string Range::text() const {
  const double infinity = std::numeric_limits<double>::infinity();
  if (low == -infinity && high == infinity) return "a number";
  if (high == infinity) return str(low_open ? "greater than " : "at least ", low);
  if (low == -infinity) return str(high_open ? "less than " : "at most ", high);
  return str("in ", low_open ? '(' : '[', low, ", ", high, high_open ? ')' : ']');
}

AcceptedArgument lazy_mode() {
  return {.name = "lazy_mode",
          .fallback = false,
          .any_value = true,
          .reason = "a sparse gradient always updates the rows that it names and no others"};
}

AcceptedArgument multi_precision() {
  return {.name = "multi_precision",
          .fallback = false,
          .any_value = true,
          .reason = "parameters are f32 anyway; under amp's use_pure_fp16 it keeps them so"};
}

AcceptedArgument use_multi_tensor() {
  return {.name = "use_multi_tensor",
          .fallback = false,
          .any_value = true,
          .reason = "the updates of many parameters are always fused into one op"};
}

AcceptedArgument rescale_grad() {
  return {.name = "rescale_grad", .fallback = 1.0, .reason = "scale the loss instead"};
}

AcceptedArgument amsgrad() {
  return {.name = "amsgrad", .fallback = false, .reason = "FleetX has no AMSGrad"};
}

const OptionDef* OptimizerDef::find(std::string_view option) const {
  for (const OptionDef& o : options)
    if (o.name == option) return &o;
  return nullptr;
}

const OptionDef* OptimizerDef::find_attr(std::string_view attr) const {
  for (const OptionDef& o : options)
    if (o.in_op() && o.attr == attr) return &o;
  return nullptr;
}

ir::Attr OptimizerDef::checked(std::string_view option, const ir::Attr& value) const {
  const OptionDef* found = find(option);
  check_arg(found != nullptr, op, " has no option '", option, "'",
            did_you_mean(option, option_names(*this)));
  ir::Attr out = value;
  check_arg(ir::coerce(out, found->fallback.type()), op, ": option '", option, "' must be ",
            ir::name_of(found->fallback.type()), ", got ", value);
  if (out.type() == ir::AttrType::kFloat) check_range(*found, out.as<double>(), op);
  return out;
}

void check_range(const OptionDef& option, double value, std::string_view where) {
  check_arg(option.range.contains(value), where, ": ", option.name, " must be ",
            option.range.text(), ", got ", value);
}

void complete(OptimizerDef& def, const std::vector<std::string_view>& states, bool powers) {
  for (const std::string_view slot : states) def.states.push_back({.slot = std::string(slot)});
  for (const OptionDef& option : def.options)
    for (StateDef& state : def.states)
      if (state.slot == option.starts) state.starts_at = option.name;
  if (powers)
    for (const char* beta : {"beta1", "beta2"})
      def.states.push_back({.slot = str(beta, "_pow"), .scalar = true, .starts_at = beta});
  if (def.fluid.name.empty() || !def.fluid.arguments.empty()) return;
  for (std::string name : arguments_of(def.python)) {
    if (name == "parameters") name = "parameter_list";
    if (name == "weight_decay") name = "regularization";
    def.fluid.arguments += (def.fluid.arguments.empty() ? "" : ", ") + name;
  }
}

std::vector<const OptimizerDef*> optimizer_defs() {
  std::vector<const OptimizerDef*> all;
  for (const auto& [name, def] : registry()) all.push_back(def);
  return all;
}

const OptimizerDef& optimizer_def(std::string_view name) {
  const auto it = registry().find(name);
  if (it != registry().end()) return *it->second;
  std::vector<std::string> known;
  for (const auto& [other, def] : registry()) known.push_back(other);
  fail(Error::Kind::kInvalidArgument,
       str("there is no optimizer '", name, "'", did_you_mean(name, known)));
}

void register_optimizer(const OptimizerDef& def) {
  FLEETX_CHECK(registry().emplace(def.op, &def).second, "two optimizers '", def.op, "'");
  check_arguments(def, def.python);
  check_arguments(def, def.fluid);
  for (const OptionDef& option : def.options)
    FLEETX_CHECK(option.starts.empty() ||
                     std::any_of(def.states.begin(), def.states.end(),
                                 [&](const StateDef& s) { return s.slot == option.starts; }),
                 def.op, ": there is no state '", option.starts, "'");
}

std::vector<std::string> arguments_of(const PythonClass& python) {
  std::vector<std::string> names;
  std::istringstream in(python.arguments);
  for (std::string name; std::getline(in >> std::ws, name, ',');) names.push_back(name);
  return names;
}

}  // namespace fleetx::optim
