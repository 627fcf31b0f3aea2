// What the framework knows about an optimizer: its options, states and the names that Python gives
// them. One OptimizerDef per optimizer, declared in fleetx/optimizers/<name>.h (see rule.h), never
// changed after start-up. The op, its checks, optim::make and the Python classes follow from it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/ir/attr.h"

namespace fleetx::optim {

// Values that a number may have.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;  // the bound itself is not allowed

  bool contains(double value) const;
  std::string text() const;  // "greater than 0", "in [0, 1)"
};
constexpr Range positive() { return {.low = 0, .low_open = true}; }
constexpr Range not_negative() { return {.low = 0}; }
constexpr Range not_positive() { return {.high = 0}; }
constexpr Range fraction() { return {.low = 0, .high = 1, .high_open = true}; }

// How a list of names tells which parameters do not decay: by a part or by the end of their name.
enum class Match : uint8_t { kContains, kEndsWith };

struct OptionDef {
  std::string name;                // member of the C++ struct, key of optim::make
  std::string python = {};         // keyword in Python; default: the name
  std::string attr = {};           // attribute of the op; default: the name
  std::string starts = {};         // state that starts at this number, which is then no attribute
  Range range = {};                // of a number
  Match match = Match::kContains;  // of a list of names: parameters without decay
  std::string doc = {};
  ir::Attr fallback = false;  // from the C++ struct

  bool in_op() const { return !attr.empty(); }
};

struct StateDef {
  std::string slot;     // of the op: input <slot>, output <slot>_out; variable <param>_<slot>_0
  bool scalar = false;  // f32[1], else like the parameter
  std::string starts_at = {};  // option with the initial value; none: 0
};

// An argument of the original that changes nothing here.
struct AcceptedArgument {
  std::string name;
  std::optional<ir::Attr> fallback = {};  // none: None
  bool any_value = false;                 // false: any other value than the default is refused
  std::string reason;
};

// Those that several optimizers have.
AcceptedArgument lazy_mode();
AcceptedArgument multi_precision();
AcceptedArgument use_multi_tensor();
AcceptedArgument rescale_grad();
AcceptedArgument amsgrad();

// A Python class. `arguments` are keywords in their order, separated by commas: those of options,
// accepted arguments, and learning_rate, parameters, weight_decay, grad_clip and name. The first
// `required` have no default. Accepted arguments that are not in the list can be given by keyword.
struct PythonClass {
  std::string name = {};
  std::string arguments = {};
  size_t required = 0;
};

// A function of the user that says which parameters decay.
struct DecayFilter {
  enum class Kind : uint8_t { kNone, kKeepsName, kExcludesParameter };
  Kind kind = Kind::kNone;
  std::string python = {};
};

struct OptimizerDef {
  std::string op;  // name of the optimizer and of its op
  std::string doc;
  std::vector<OptionDef> options;
  std::vector<AcceptedArgument> accepted;
  DecayFilter decay_filter;
  // paddle.optimizer.<name>, and fluid.optimizer.<name> and <name>Optimizer. A fluid class without
  // arguments has those of the other with the keywords of 1.x (parameter_list, regularization);
  // without a name there is none.
  PythonClass python, fluid;

  // From the options and the rule (see rule.h):
  double lr = 0;  // default
  std::vector<StateDef> states;
  bool with_decay = false;  // the op has a with_decay list
  bool dense_only = false;  // needs the norm of a whole gradient

  const OptionDef* find(std::string_view option) const;
  const OptionDef* find_attr(std::string_view attr) const;
  // A value for this option: converted to its type, checked against its range.
  ir::Attr checked(std::string_view option, const ir::Attr& value) const;
};

// Throws kInvalidArgument where the number is not in the option's range.
void check_range(const OptionDef& option, double value, std::string_view where);

// Fills in what follows from the rule's states and from other fields.
void complete(OptimizerDef& def, const std::vector<std::string_view>& states, bool powers);

// Registered optimizers, by name.
std::vector<const OptimizerDef*> optimizer_defs();
// An unknown name is an error that lists the nearest known ones.
const OptimizerDef& optimizer_def(std::string_view name);
// Two of one name, or an argument that is not declared, are bugs (kInternal).
void register_optimizer(const OptimizerDef& def);

// Splits the `arguments` of a class.
std::vector<std::string> arguments_of(const PythonClass& python);

}  // namespace fleetx::optim
