#include "fleetx/data/numbers.h"

#include <charconv>

namespace fleetx::data::detail {
namespace {

// Of a number that no double holds: "1e-400" is too small, "1e400" is not.
bool too_small(const char* at, const char* end) {
  while (at != end && (*at | 32) != 'e') ++at;
  return end - at > 1 && at[1] == '-';
}

}  // namespace

const char* read_any_float(const char* at, float& value) {
  const char* end = at;
  while (*end != ' ' && *end != '\n' && *end != '\t' && *end != '\r') ++end;
  const auto [next, error] = std::from_chars(at, end, value);
  if (error == std::errc()) return next;
  if (error != std::errc::result_out_of_range) return nullptr;
  double wide = 0;
  if (std::from_chars(at, end, wide).ec == std::errc()) {
    if (std::fabs(wide) > 1) return nullptr;
  } else if (!too_small(at, next)) {
    return nullptr;
  }
  value = static_cast<float>(wide);
  return next;
}

}  // namespace fleetx::data::detail
