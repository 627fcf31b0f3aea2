#include "fleetx/base/env.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "fleetx/base/error.h"

namespace fleetx::env {
namespace {

constexpr std::array kKnown{
    Known{"FLEETX_THREADS", "compute threads of this process (default: physical cores it may use)"},
    Known{"OMP_NUM_THREADS", "the same, where FLEETX_THREADS is not set"},
    Known{"FLEETX_LOG", "least level that is logged: debug, info (default), warning, error"},
    Known{"FLEETX_MAX_ISA", "highest instruction set to use: sse, avx2, avx512, avx512_bf16, amx"},
    Known{"FLEETX_SIMULATE_FAULT",
          "instruction set that is to look advertised but faulting (tests)"},
    Known{"FLEETX_DUMP", "folder for the program text after every pass, and the plan"},
    Known{"FLEETX_SKIP", "comma-separated optional passes to skip, to bisect a problem"},
    Known{"FLEETX_TRACE", "file for a Chrome/Perfetto trace of every run"},
    Known{"FLEETX_PROFILE",
          "1: print a table of time, GFLOP/s and GB/s per op kind when an executor ends"},
    Known{"FLEETX_CHECK_FINITE", "1: stop at the first op that produces NaN or Inf, and name it"},
    Known{"FLEETX_DATA", "folder of data sets (default: where the Debian packages put them)"},
    Known{"XDG_CACHE_HOME", "where generated data sets are cached (default: ~/.cache)"},
    Known{"HOME", "the same, where XDG_CACHE_HOME is not set"},
};

}  // namespace

std::span<const Known> known_variables() { return kKnown; }

std::optional<std::string> get(std::string_view name) {
  FLEETX_CHECK(
      std::any_of(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.name == name; }),
      "environment variable ", name, " is not listed in base/env.cc");
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

bool flag(std::string_view name) {
  const auto value = get(name);
  return value && (*value == "1" || *value == "true" || *value == "yes" || *value == "on");
}

std::optional<int> integer(std::string_view name) {
  const auto value = get(name);
  if (!value) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  check_arg(error == std::errc{} && end == value->data() + value->size(), "environment variable ",
            name, "='", *value, "' is not a whole number");
  return number;
}

}  // namespace fleetx::env
