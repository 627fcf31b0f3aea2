#include "fleetx/launch/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <sstream>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"

namespace fleetx::launch {
namespace {

constexpr size_t kNameWidth = 40, kValueWidth = 45;

std::string right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string left(const std::string& text, size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

std::string centred(const std::string& text, size_t width) {
  const size_t space = width > text.size() ? width - text.size() : 0;
  return str(std::string(space / 2, ' '), text, std::string(space - space / 2, ' '));
}

std::string shortened(const std::string& value) {
  if (value.size() < kValueWidth) return value;
  return "... " + value.substr(value.size() - 41);
}

}  // namespace

std::string configuration_block(const Options& options) {
  std::ostringstream out;
  out << "-----------  Configuration Arguments -----------\n";
  for (const auto& [name, value] : describe(options))
    out << name << ":" << (value.empty() ? "" : " ") << value << "\n";
  out << std::string(48, '-') << "\n";
  return out.str();
}

std::string environment_table(const Variables& variables) {
  size_t width = kNameWidth;
  for (const auto& [name, value] : variables) width = std::max(width, name.size());
  const size_t whole = width + 2 + kValueWidth;
  const auto line = [&](char c) { return str("    +", std::string(whole, c), "+\n"); };
  const auto row = [&](const std::string& name, const std::string& value) {
    return str("    |", right(name, width), "  ", centred(shortened(value), kValueWidth), "|\n");
  };
  std::ostringstream out;
  out << line('=') << row("Distributed Envs", "Value") << line('-');
  for (const auto& [name, value] : variables) out << row(name, value);
  out << line('=');
  return out.str();
}

Variables shown_variables(const JobPlan& plan, const Variables& variables) {
  const size_t shown = plan.mode == Mode::kCollective ? 5 : 7;
  Variables result;
  for (const auto& [name, value] : variables)
    if ((result.size() < shown && name != job_var::kSecret) || name == job_var::kStore)
      result.emplace_back(name, value);
  return result;
}

std::string endpoints_log(const JobPlan& plan) {
  std::ostringstream out;
  out << "PADDLE_TRAINER_ENDPOINTS:\n";
  for (const Endpoint& endpoint : plan.endpoints(JobRole::kWorker))
    out << to_string(endpoint) << "\n";
  return out.str();
}

std::string slots_line(const JobPlan& plan, const Environment& environment) {
  std::vector<std::string> slots;
  int threads = 1, workers = 0;
  for (const Process& process : plan.processes) {
    if (!plan.is_local(process)) continue;
    threads = std::max(threads, process.share.threads);
    workers += process.role == JobRole::kWorker;
    if (process.share.cores.empty()) continue;
    slots.push_back(str("slot ", process.devices, " = ", describe(process.share)));
  }
  const auto given = find(environment, "FLEETX_THREADS")    ? "FLEETX_THREADS"
                     : find(environment, "OMP_NUM_THREADS") ? "OMP_NUM_THREADS"
                                                            : nullptr;
  const std::string number = given != nullptr
                                 ? str(given, "=", *find(environment, given), " as you set it")
                                 : str("OMP_NUM_THREADS=", threads);
  if (workers == 0) return str("no workers here, and nothing is pinned; ", number);
  if (slots.empty())
    return str(workers == 1 ? "the worker has" : str(workers, " workers share"),
               " all cores, not pinned; ", number);
  return str(join(slots, ", "), "; ", number);
}

std::string summary(const JobPlan& plan, const Outcome& outcome, const std::string& log_dir) {
  size_t name_width = 7, why_width = 4;
  for (const EndedProcess& end : outcome.processes) {
    name_width = std::max(name_width, end.name.size());
    why_width = std::max(why_width, end.why.size());
  }
  std::ostringstream out;
  out << "job '" << plan.job_id << "' took " << seconds_text(outcome.seconds) << ": "
      << outcome.verdict << "; logs are in " << log_dir << "\n";
  out << "    " << left("process", name_width) << "  " << right("pid", 8) << "  "
      << left("exit", why_width) << "  " << right("time", 10) << "  log\n";
  std::vector<EndedProcess> sorted = outcome.processes;
  std::ranges::stable_sort(sorted, {}, [](const EndedProcess& end) {
    const size_t space = end.name.rfind(' ');
    return std::pair(end.name.substr(0, space), std::atoi(end.name.c_str() + space + 1));
  });
  for (const EndedProcess& end : sorted)
    out << "    " << left(end.name, name_width) << "  " << right(std::to_string(end.pid), 8) << "  "
        << left(end.why, why_width) << "  " << right(seconds_text(end.seconds), 10) << "  "
        << end.log_path << "\n";
  std::string text = out.str();
  text.pop_back();
  return text;
}

std::string seconds_text(double seconds) {
  std::ostringstream out;
  if (seconds < 60) {
    out << std::fixed << std::setprecision(seconds < 1 ? 2 : 1) << seconds << " s";
    return out.str();
  }
  const long whole = std::lround(seconds);
  if (whole >= 3600) out << whole / 3600 << " h " << std::setw(2) << std::setfill('0');
  out << whole / 60 % 60 << " min " << std::setw(2) << std::setfill('0') << whole % 60 << " s";
  return out.str();
}

}  // namespace fleetx::launch
