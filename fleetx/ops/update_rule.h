// The update of an optimizer's op as a parameter server applies it: to records of values and
// states, by the very loops of the op's kernel.
//
//   ps::UpdateRulePtr rule = make_update_rule(update, 0, {{"velocity", 0.0f}});
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fleetx/ir/program.h"
#include "fleetx/ps/update.h"

namespace fleetx::ops {

// First values of the states of a parameter, by the slots of the op.
using FirstStates = std::map<std::string, float, std::less<>>;
float first_value(const FirstStates& first, std::string_view state);  // none: kInternal

// Of parameter `index` of the op: its attributes, learning-rate factor and decay count, its
// gradient and scale do not. An op that is no optimizer's is kInternal.
ps::UpdateRulePtr make_update_rule(const ir::Op& update, size_t index, const FirstStates& first);

using MakeUpdateRule = ps::UpdateRulePtr (*)(const ir::Op& update, size_t index,
                                             const FirstStates& first);
void register_update_rule(std::string_view op, MakeUpdateRule make);

// Element `index` of a list attribute with one value per parameter, or `fallback` where it is
// empty.
double of_parameter(const ir::Op& update, std::string_view attr, size_t index, double fallback);
// "adam {beta1=0.9, ...}" with the values of this parameter.
std::string text_of_update(const ir::Op& update, size_t index);

}  // namespace fleetx::ops
