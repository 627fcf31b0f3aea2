// The one exception of FleetX. User errors are kInvalidArgument and say what is wrong, where, what
// was expected and what was found. kInternal is a bug of FleetX and carries file:line.
#pragma once

#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fleetx {

class Error : public std::runtime_error {
 public:
  enum class Kind { kInvalidArgument, kUnsupported, kComm, kTimeout, kCorrupt, kInternal };

  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

std::string_view to_string(Error::Kind kind);

// Concatenates anything that can be streamed: g++ 12 has no std::format.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

[[noreturn]] void fail(Error::Kind kind, const std::string& message);

// For user errors.
template <class... Parts>
void check_arg(bool ok, const Parts&... message) {
  if (!ok) [[unlikely]]
    fail(Error::Kind::kInvalidArgument, str(message...));
}

// For damaged files.
template <class... Parts>
void check_file(bool ok, const Parts&... message) {
  if (!ok) [[unlikely]]
    fail(Error::Kind::kCorrupt, str(message...));
}

namespace detail {
[[noreturn]] void fail_internal(std::string_view condition, const std::string& message,
                                std::source_location where);
}  // namespace detail

// For internal invariants: FLEETX_CHECK(i < n, "i = ", i).
#define FLEETX_CHECK(condition, ...)                                                            \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::fleetx::detail::fail_internal(#condition, ::fleetx::str("" __VA_OPT__(, ) __VA_ARGS__), \
                                      std::source_location::current());                         \
  } while (0)

}  // namespace fleetx
