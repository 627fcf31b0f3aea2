#include "tools/table.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "fleetx/base/error.h"

namespace fleetx::tools {

void Table::add(std::vector<std::string> row) {
  FLEETX_CHECK(row.size() == columns_.size(), row.size(), " cells, ", columns_.size(), " columns");
  rows_.push_back(std::move(row));
}

void Table::print(std::ostream& out) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = columns_[c].title.size();
    for (const auto& row : rows_) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell) {
    std::string text;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string value = cell(c);
      const std::string gap(widths[c] - value.size(), ' ');
      if (c > 0) text += "  ";
      text += columns_[c].align == Align::kRight ? gap + value : value + gap;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << "\n";
  };
  line([&](size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) line([&](size_t c) { return row[c]; });
}

std::string decimal(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string short_number(double value) {
  constexpr std::array<const char*, 5> kUnits{"", " k", " M", " G", " T"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return decimal(value, unit == 0 ? 0 : 1) + kUnits[unit];
}

std::string mib(double bytes) { return decimal(bytes / (1 << 20), 1); }

}  // namespace fleetx::tools
