// Text tables with aligned columns.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace fleetx::tools {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row);
  void print(std::ostream& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string decimal(double value, int digits);
// 1234567 -> "1.2 M"; the units are powers of 1000.
std::string short_number(double value);
std::string mib(double bytes);  // "97.5"

}  // namespace fleetx::tools
