#include "fleetx/runtime/profile.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace fleetx::runtime {

void Profile::add(const Step& step, double seconds) {
  Row& row = rows_[str(ir::name_of(step.role), " ", step.label)];
  ++row.calls;
  row.seconds += seconds;
  row.flops += step.cost.flops;
  row.bytes += step.cost.bytes;
}

void Profile::add(const CallRow& call) {
  const auto known = std::find_if(calls_.begin(), calls_.end(),
                                  [&](const CallRow& row) { return row.name == call.name; });
  CallRow& row = known != calls_.end() ? *known : calls_.emplace_back(CallRow{call.name});
  ++row.steps;
  row.bytes += call.bytes;
  row.bytes_sent += call.bytes_sent;
  row.seconds += call.seconds;
  row.waited_seconds += call.waited_seconds;
}

double Profile::seconds() const {
  double sum = 0;
  for (const auto& [name, row] : rows_) sum += row.seconds;
  return sum;
}

std::string Profile::table() const {
  std::vector<std::pair<std::string, Row>> sorted(rows_.begin(), rows_.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  const double total = std::max(seconds(), 1e-12);
  std::ostringstream out;
  out << std::left << std::setw(40) << "op" << std::right << std::setw(8) << "calls"
      << std::setw(12) << "ms" << std::setw(8) << "%" << std::setw(10) << "GFLOP/s" << std::setw(10)
      << "GB/s" << '\n'
      << std::fixed;
  for (const auto& [name, row] : sorted) {
    const double seconds = std::max(row.seconds, 1e-12);
    out << std::left << std::setw(40) << name << std::right << std::setw(8) << row.calls
        << std::setprecision(3) << std::setw(12) << row.seconds * 1e3 << std::setprecision(1)
        << std::setw(8) << 100 * row.seconds / total << std::setw(10) << row.flops / seconds / 1e9
        << std::setw(10) << row.bytes / seconds / 1e9 << '\n';
  }
  return out.str() + table_of_calls();
}

std::string Profile::table_of_calls() const {
  if (calls_.empty()) return "";
  std::ostringstream out;
  out << std::left << std::setw(60) << "calls to other ranks, per step" << std::right
      << std::setw(8) << "steps" << std::setw(10) << "MB" << std::setw(10) << "MB sent"
      << std::setw(12) << "ms" << std::setw(12) << "ms waited" << '\n'
      << std::fixed << std::setprecision(3);
  const auto line = [&](const CallRow& row, double steps) {
    out << std::left << std::setw(60) << row.name << std::right << std::setw(8) << row.steps
        << std::setw(10) << row.bytes / steps / 1e6 << std::setw(10) << row.bytes_sent / steps / 1e6
        << std::setw(12) << row.seconds / steps * 1e3 << std::setw(12)
        << row.waited_seconds / steps * 1e3 << '\n';
  };
  CallRow all{"all"};
  for (const CallRow& row : calls_) {
    line(row, static_cast<double>(row.steps));
    all.steps = std::max(all.steps, row.steps);
    all.bytes += row.bytes;
    all.bytes_sent += row.bytes_sent;
    all.seconds += row.seconds;
    all.waited_seconds += row.waited_seconds;
  }
  line(all, static_cast<double>(all.steps));
  return out.str();
}

}  // namespace fleetx::runtime
