// The only place that reads environment variables of this process. Every variable FleetX knows is
// listed in env.cc with one line of help, so that `fleetx doctor` can print them all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fleetx::env {

struct Known {
  std::string_view name;
  std::string_view help;
};

std::span<const Known> known_variables();

// The variable must be in the list above; asking for another is a bug (kInternal).
std::optional<std::string> get(std::string_view name);  // nullopt if unset or empty
bool flag(std::string_view name);                       // 1, true, yes, on
std::optional<int> integer(
    std::string_view name);  // not a number: kInvalidArgument naming the variable

}  // namespace fleetx::env
