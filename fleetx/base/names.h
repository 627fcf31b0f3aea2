// Helps a user who mistyped a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetx {

// Up to three of `known` that are close to `name`, as "; did you mean 'a', 'b'?", or "" where none
// is close.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace fleetx
