// Helpers for names and other short texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetx {

// Up to three of `known` that are close to `name`, as "; did you mean 'a', 'b'?", or "" if none
// is close.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);
// Files store texts as UTF-8, and their readers require it.
bool is_utf8(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace fleetx
