#include "fleetx/ops/update_rule.h"

#include <map>
#include <sstream>

namespace fleetx::ops {
namespace {

std::map<std::string, MakeUpdateRule, std::less<>>& makers() {
  static std::map<std::string, MakeUpdateRule, std::less<>> all;
  return all;
}

}  // namespace

float first_value(const FirstStates& first, std::string_view state) {
  const auto it = first.find(state);
  FLEETX_CHECK(it != first.end(), "no first value of the state '", state, "'");
  return it->second;
}

void register_update_rule(std::string_view op, MakeUpdateRule make) { makers().emplace(op, make); }

ps::UpdateRulePtr make_update_rule(const ir::Op& update, size_t index, const FirstStates& first) {
  const auto it = makers().find(update.type());
  FLEETX_CHECK(it != makers().end(), ir::describe(update), "is not the op of an optimizer");
  return it->second(update, index, first);
}

double of_parameter(const ir::Op& update, std::string_view attr, size_t index, double fallback) {
  if (update.def->find_attr(attr) == nullptr) return fallback;
  const auto values = update.attr<ir::Floats>(attr);
  return values.empty() ? fallback : values[index];
}

std::string text_of_update(const ir::Op& update, size_t index) {
  std::ostringstream out;
  out << update.type();
  for (const auto& [name, attr] : update.attrs) {
    out << ' ' << name << '=';
    if (attr.type() == ir::AttrType::kFloats)
      out << ir::Attr(of_parameter(update, name, index, name == "l1" || name == "l2" ? 0.0 : 1.0));
    else
      out << attr;
  }
  return out.str();
}

}  // namespace fleetx::ops
