#include "fleetx/ir/training.h"

#include <algorithm>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

const Training::Parameter* Training::find(std::string_view parameter) const {
  const auto it = std::find_if(parameters.begin(), parameters.end(),
                               [&](const Parameter& p) { return p.name == parameter; });
  return it == parameters.end() ? nullptr : &*it;
}

const Training::Parameter* Training::find_gradient(std::string_view variable) const {
  const auto it = std::find_if(parameters.begin(), parameters.end(),
                               [&](const Parameter& p) { return p.gradient == variable; });
  return it == parameters.end() ? nullptr : &*it;
}

bool Training::mentions(std::string_view variable) const {
  return variable == loss || variable == seed || variable == step || variable == ready ||
         std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& p) {
           return p.name == variable || p.gradient == variable || p.learning_rate == variable;
         });
}

const Training& training_of(const Program& program, std::string_view who) {
  check_arg(!program.training().empty(), who, ": the program has no backward part; ",
            "call minimize, or append_backward and apply_gradients, first");
  return program.training();
}

}  // namespace fleetx::ir
