// DistributedStrategy as a table for people: what is on with its settings, then everything else.
#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/fleet/strategy_fields.h"

namespace fleetx::fleet {
namespace {

constexpr size_t kNameWidth = 38, kValueWidth = 38, kWidth = kNameWidth + 2 + kValueWidth;

std::string line(char c) { return str("    +", std::string(kWidth, c), "+\n"); }

std::string spaces(size_t width, size_t used) {
  return std::string(width > used ? width - used : 0, ' ');
}

std::string centred(const std::string& text, size_t width) {
  const std::string all = spaces(width, text.size());
  return str(all.substr(0, all.size() / 2), text, all.substr(all.size() / 2));
}

std::string title(const std::string& text) { return str("    |", centred(text, kWidth), "|\n"); }

std::string row(std::string_view name, const std::string& value) {
  return str("    |", spaces(kNameWidth, name.size()), name, "  ", centred(value, kValueWidth),
             "|\n");
}

std::string shown(const ir::Attr& value) {
  if (value.type() == ir::AttrType::kBool) return value.as<bool>() ? "True" : "False";
  if (value.type() == ir::AttrType::kString) return value.as<std::string>();
  if (value.type() == ir::AttrType::kFloat) return number_text(value.as<double>());
  return str(value);
}

// A list has a row for each of its entries, its name in the first.
std::string rows(const Field& field) {
  const ir::Attr value = read(field);
  return std::visit(
      [&]<class T>(const T& v) -> std::string {
        if constexpr (kIsList<T>) {
          if (v.empty()) return row(field.name, "");
          std::string text;
          for (size_t i = 0; i < v.size(); ++i)
            text += row(i == 0 ? field.name : "", shown(ir::Attr(v[i])));
          return text;
        } else {
          return row(field.name, shown(value));
        }
      },
      value.value());
}

std::string section(const std::string& name, const std::vector<Field>& fields) {
  std::string text = title(name) + line('-');
  for (const Field& field : fields) text += rows(field);
  return text + line('=');
}

}  // namespace

std::string DistributedStrategy::to_table() const {
  const std::vector<Group> groups = describe(*this);
  const std::vector<std::string> different = changed();
  std::string text =
      str(line('='), title(""), title("DistributedStrategy Overview"), title(""), line('='));
  std::vector<Field> flags = groups.front().fields;
  for (const Group& group : groups) {
    if (!group.strategy.empty()) {
      // Its switch shows in its section; off, it is not worth a line.
      std::erase_if(flags, [&](const Field& field) { return field.name == group.strategy; });
      if (get(group.strategy).as<bool>())
        text += section(str(group.strategy, "=True <-> ", group.name), group.fields);
    } else if (group.name.ends_with("_configs")) {
      const auto inside = [&](const std::string& name) {
        return name.starts_with(str(group.name, "."));
      };
      if (std::ranges::any_of(different, inside))
        text += section(std::string(group.name), group.fields);
    }
  }
  text += section("Environment Flags, Communication Flags", flags);
  text += section("Build Strategy", find_group(groups, "build_strategy")->fields);
  text += section("Execution Strategy", find_group(groups, "execution_strategy")->fields);
  return text;
}

}  // namespace fleetx::fleet
