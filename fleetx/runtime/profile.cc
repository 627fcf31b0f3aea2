#include "fleetx/runtime/profile.h"

#include <algorithm>
#include <iomanip>
#include <sstream>
#include <vector>

namespace fleetx::runtime {

void Profile::add(const Step& step, double seconds) {
  Row& row = rows_[str(ir::name_of(step.role), " ", step.label)];
  ++row.calls;
  row.seconds += seconds;
  row.flops += step.cost.flops;
  row.bytes += step.cost.bytes;
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
  return out.str();
}

}  // namespace fleetx::runtime
