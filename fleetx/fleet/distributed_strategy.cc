#include "fleetx/fleet/distributed_strategy.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/fleet/strategy_fields.h"

namespace fleetx::fleet {
namespace {

constexpr std::string_view kWho = "DistributedStrategy";

const Field& field_of(const std::vector<Group>& groups, std::string_view name) {
  check_arg(name.empty() || find_group(groups, name) == nullptr, kWho, ".", name,
            " is a group of settings, not one value");
  const Field* field = groups.front().find(name);
  if (field == nullptr)
    fail(Error::Kind::kInvalidArgument,
         str(kWho, " has no field '", name, "'", did_you_mean(name, all_names(groups))));
  return *field;
}

const Group& group_of(const std::vector<Group>& groups, std::string_view name) {
  const Group* group = name.empty() ? nullptr : find_group(groups, name);
  if (group == nullptr)
    fail(Error::Kind::kInvalidArgument,
         str(kWho, " has no settings '", name, "'",
             did_you_mean(name, DistributedStrategy::configs_names())));
  return *group;
}

}  // namespace

ir::Attr DistributedStrategy::get(std::string_view name) const {
  return read(field_of(describe(*this), name));
}

void DistributedStrategy::set(std::string_view name, const ir::Attr& value) {
  write(field_of(describe(*this), name), value, str(kWho, ".", name));
  if (name == "a_sync") a_sync_configs.k_steps = 0;
}

ir::Attrs DistributedStrategy::get_configs(std::string_view name) const {
  ir::Attrs values;
  const std::vector<Group> groups = describe(*this);
  for (const Field& field : group_of(groups, name).fields) values.emplace(field.name, read(field));
  return values;
}

void DistributedStrategy::set_configs(std::string_view name, const ir::Attrs& values) {
  DistributedStrategy next = *this;
  const std::vector<Group> groups = describe(next);
  const Group& group = group_of(groups, name);
  for (const auto& [key, value] : values) {
    const Field* field = group.find(key);
    if (field == nullptr)
      fail(Error::Kind::kInvalidArgument,
           str(kWho, ".", name, " has no key '", key, "'", did_you_mean(key, group.names())));
    write(*field, value, str(kWho, ".", name, "['", key, "']"));
  }
  *this = std::move(next);
}

std::vector<std::string> DistributedStrategy::field_names() {
  const DistributedStrategy strategy;
  return describe(strategy).front().names();
}

std::vector<std::string> DistributedStrategy::configs_names() {
  const DistributedStrategy strategy;
  std::vector<std::string> names;
  for (const Group& group : describe(strategy))
    if (!group.name.empty()) names.emplace_back(group.name);
  return names;
}

std::vector<std::string> DistributedStrategy::changed() const {
  std::vector<std::string> names;
  each_changed(*this, [&](const Group& group, const Field& field) {
    names.push_back(full_name(group, field));
  });
  return names;
}

std::vector<std::string> DistributedStrategy::enabled_strategies() const {
  std::vector<std::string> names;
  const std::vector<Group> groups = describe(*this);
  for (const Field& field : groups.front().fields) {
    if (field.rule != Rule::kStrategy || !read(field).as<bool>()) continue;
    if (field.name == "a_sync" && a_sync_configs.k_steps < 0) continue;
    names.emplace_back(field.name);
  }
  return names;
}

void check_values(const DistributedStrategy& strategy) {
  DistributedStrategy copy = strategy;
  for (const Group& group : describe(copy))
    for (const Field& field : group.fields)
      write(field, read(field), str(kWho, ".", full_name(group, field)));
}

void check_unused_configs(const DistributedStrategy& strategy) {
  each_changed(strategy, [&](const Group& group, const Field& field) {
    // A job with servers reads a_sync_configs whether a_sync is true or false.
    if (group.strategy.empty() || group.strategy == "a_sync") return;
    check_arg(strategy.get(group.strategy).as<bool>(), kWho, ".", full_name(group, field),
              " is set, but ", group.strategy, " is off, so that it has no effect; set ",
              group.strategy, " = true or leave ", group.name, " alone");
  });
}

void check_built(const DistributedStrategy& strategy, const std::vector<std::string>& built) {
  for (const std::string& name : strategy.enabled_strategies())
    if (std::ranges::find(built, name) == built.end())
      fail(Error::Kind::kUnsupported,
           str(kWho, ".", name, " is on, but this version does not have it; built: ",
               built.empty() ? "none" : join(built, ", ")));
  each_changed(strategy, [&](const Group& group, const Field& field) {
    const bool matters = group.name == "hybrid_configs" || group.name == "gradient_scale_configs" ||
                         group.name == "trainer_desc_configs";
    if (!matters || field.name == "dp_degree" || field.name == "sharding_degree") return;
    const auto follows = [&](const char* degree, const char* of) {
      return field.name == degree && std::ranges::find(built, of) != built.end();
    };
    if (follows("mp_degree", "tensor_parallel") || follows("pp_degree", "pipeline")) return;
    fail(Error::Kind::kUnsupported, str(kWho, ".", full_name(group, field), " = ", read(field),
                                        ": this version has only the default"));
  });
}

}  // namespace fleetx::fleet
