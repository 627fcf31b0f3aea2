// Log lines on stderr: `INFO 2026-01-04 17:59:08,727 planner] message`. Level from FLEETX_LOG.
// Thread-safe.
#pragma once

#include <string_view>

#include "fleetx/base/error.h"

namespace fleetx::log {

enum class Level { kDebug, kInfo, kWarning, kError };

bool enabled(Level level);
void write(Level level, std::string_view component, const std::string& message);

template <class... P>
void debug(std::string_view component, const P&... parts) {
  if (enabled(Level::kDebug)) write(Level::kDebug, component, str(parts...));
}
template <class... P>
void info(std::string_view component, const P&... parts) {
  if (enabled(Level::kInfo)) write(Level::kInfo, component, str(parts...));
}
template <class... P>
void warning(std::string_view component, const P&... parts) {
  if (enabled(Level::kWarning)) write(Level::kWarning, component, str(parts...));
}
template <class... P>
void error(std::string_view component, const P&... parts) {
  if (enabled(Level::kError)) write(Level::kError, component, str(parts...));
}

}  // namespace fleetx::log
