#include "fleetx/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "fleetx/base/env.h"
#include "fleetx/base/log_quiet.h"

namespace fleetx::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarning: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::level::level_enum level_from_env() {
  const std::string name = env::get("FLEETX_LOG").value_or("info");
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "warning") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  check_arg(false, "FLEETX_LOG='", name, "': choose debug, info, warning or error");
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("fleetx",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->set_level(level_from_env());
    return made;
  }();
  return *instance;
}

thread_local int quiet = 0;  // how many Quiet this thread has

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kDebug: return "DEBUG";
    case Level::kInfo: return "INFO";
    case Level::kWarning: return "WARNING";
    case Level::kError: return "ERROR";
  }
  return "INFO";
}

}  // namespace

Quiet::Quiet() { ++quiet; }
Quiet::~Quiet() { --quiet; }

bool enabled(Level level) {
  return (quiet == 0 || level == Level::kError) && logger().should_log(to_spdlog(level));
}

void write(Level level, std::string_view component, const std::string& message) {
  const auto now = std::chrono::system_clock::now();
  const auto since = now.time_since_epoch();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &local);
  logger().log(to_spdlog(level), "{} {},{:03d} {}] {}", name_of(level), stamp, millis, component,
               message);
  logger().flush();
}

}  // namespace fleetx::log
