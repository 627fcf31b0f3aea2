#include "fleetx/strategies/matrix.h"

#include <algorithm>
#include <iomanip>
#include <ostream>

#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

constexpr std::string_view kAlways = "data_parallel";
// Of jobs with servers, which have no data_parallel.
constexpr std::string_view kServers = "parameter_server";
// Follows from layers that the user has split.
constexpr std::string_view kSplit = "tensor_parallel";

// The cells of a row, up to the strategy itself, and the reasons so far.
std::vector<std::string> row_of(const std::vector<std::string>& names, size_t row,
                                std::vector<std::string>& reasons) {
  std::vector<std::string> cells;
  for (size_t column = 0; column < row; ++column) {
    const std::string reason = why_not_together(names[row], names[column]);
    if (!reason.empty()) reasons.push_back(reason);
    cells.push_back(reason.empty() ? "works" : str("[", reasons.size(), "]"));
  }
  return cells;
}

}  // namespace

std::vector<std::string> combinable_strategies() {
  std::vector<std::string> names = strategy_names();
  std::erase_if(names, [](const auto& name) {
    return name == kAlways || name == kServers || name == kSplit;
  });
  return names;
}

std::string why_not_together(std::string_view a, std::string_view b) {
  try {
    const ResolvedStrategies resolved({{std::string(a)}, {std::string(b)}, {std::string(kAlways)}},
                                      {.mesh = Mesh({{kDataAxis, 2}}, 0)});
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::kInvalidArgument) throw;
    return e.what();
  }
  return "";
}

void print_matrix(std::ostream& out, MatrixForm form) {
  const std::vector<std::string> names = combinable_strategies();
  const bool markdown = form == MatrixForm::kMarkdown;
  std::vector<std::string> reasons;
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  // Columns are numbered, as their names are long.
  if (markdown) {
    out << "| |";
    for (size_t i = 0; i + 1 < names.size(); ++i) out << " " << i + 1 << " |";
    out << "\n|---|";
    for (size_t i = 0; i + 1 < names.size(); ++i) out << "---|";
    out << "\n";
  } else {
    out << std::string(width + 4, ' ');
    for (size_t i = 0; i + 1 < names.size(); ++i) out << std::setw(7) << i + 1;
    out << "\n";
  }
  for (size_t row = 0; row < names.size(); ++row) {
    const std::vector<std::string> cells = row_of(names, row, reasons);
    if (markdown) {
      out << "| " << row + 1 << " `" << names[row] << "` |";
      for (size_t i = 0; i + 1 < names.size(); ++i)
        out << " " << (i < cells.size() ? cells[i] : "") << " |";
    } else {
      out << std::setw(2) << row + 1 << "  " << std::left << std::setw(static_cast<int>(width))
          << names[row] << std::right;
      for (const std::string& cell : cells) out << std::setw(7) << cell;
    }
    out << "\n";
  }
  if (!reasons.empty()) out << "\n";
  for (size_t i = 0; i < reasons.size(); ++i)
    out << (markdown ? "- " : "") << "[" << i + 1 << "] " << reasons[i] << "\n";
}

}  // namespace fleetx::strategies
