// The one description of DistributedStrategy: every field with its name. All that works on fields
// by name (get, set, text, table, checks) goes through it. Internal to fleet/.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "fleetx/fleet/distributed_strategy.h"

namespace fleetx::fleet {

enum class Rule { kAny, kStrategy, kPositive, kNotNegative };  // kStrategy: a switch of a strategy

struct Field {
  using Ref = std::variant<bool*, int*, double*, std::string*, ir::Strings*, ir::Ints*, ir::Floats*,
                           DistributedStrategy::Mode*>;
  std::string_view name;
  Ref ref;
  Rule rule = Rule::kAny;
  std::vector<std::string_view> choices = {};  // of a string; none: any
};

struct Group {
  std::string_view name;      // "amp_configs"; "" for the fields of DistributedStrategy itself
  std::string_view strategy;  // the switch that it belongs to, or ""
  std::vector<Field> fields;

  const Field* find(std::string_view field) const;
  std::vector<std::string> names() const;
};

// The first group holds the fields of the strategy itself.
std::vector<Group> describe(DistributedStrategy& strategy);
// For reading only.
std::vector<Group> describe(const DistributedStrategy& strategy);

const Group* find_group(const std::vector<Group>& groups, std::string_view name);
std::vector<std::string> all_names(const std::vector<Group>& groups);  // top-level ones

std::string full_name(const Group& group, const Field& field);  // amp, amp_configs.incr_ratio
std::string_view type_of(const Field& field);
ir::Attr read(const Field& field);
std::string number_text(double value);  // the shortest that is read back as the same: 0.0005, 2.0
// Throws kInvalidArgument "who: ..." where type or range are wrong; nothing is written then.
void write(const Field& field, const ir::Attr& value, std::string_view who);

template <class T>
inline constexpr bool kIsList =
    std::is_same_v<T, ir::Strings> || std::is_same_v<T, ir::Ints> || std::is_same_v<T, ir::Floats>;

// Calls fn for every field that differs from its default, group by group.
void each_changed(const DistributedStrategy& strategy,
                  const std::function<void(const Group& group, const Field& field)>& fn);

}  // namespace fleetx::fleet
