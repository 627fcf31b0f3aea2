#include "fleetx/train/history.h"

#include <array>
#include <charconv>
#include <cmath>

#include "fleetx/base/error.h"
#include "fleetx/train/plot.h"

namespace fleetx::train {
namespace {

constexpr std::string_view kHeader = "split,epoch,step,loss,accuracy,seconds";

std::string number(double value) {
  if (std::isnan(value)) return "";
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

}  // namespace

std::string History::to_csv() const {
  std::string out = std::string(kHeader) + "\n";
  for (const Record& r : records_)
    out += str(r.split, ",", r.epoch, ",", r.step, ",", number(r.loss), ",", number(r.accuracy),
               ",", number(r.seconds), "\n");
  return out;
}

History History::parse_csv(std::string_view text, std::string_view source) {
  History history;
  int line = 0;
  while (!text.empty()) {
    ++line;
    std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(row.size() + 1, text.size()));
    const auto check = [&](bool ok) {
      check_file(ok, source, ":", line, ": expected ", kHeader, ", got ", row.substr(0, 200));
    };
    if (line == 1) {
      check(row == kHeader);
      continue;
    }
    std::array<std::string_view, 6> cells;
    std::string_view rest = row;
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t end = rest.find(',');
      check((end == std::string_view::npos) == (i + 1 == cells.size()));
      cells[i] = rest.substr(0, end);
      rest.remove_prefix(std::min(cells[i].size() + 1, rest.size()));
    }
    const auto read = [&](std::string_view cell, auto value) {
      const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      check(error == std::errc{} && end == cell.data() + cell.size());
      return value;
    };
    const double none = std::nan("");
    history.add({std::string(cells[0]), read(cells[1], int64_t{0}), read(cells[2], int64_t{0}),
                 cells[3].empty() ? none : read(cells[3], 0.0),
                 cells[4].empty() ? none : read(cells[4], 0.0), read(cells[5], 0.0)});
  }
  return history;
}

void History::plot(const std::string& path) const {
  Panel loss{.title = "Loss", .x_label = "step", .y_label = "loss", .from_zero = true};
  Panel accuracy{.title = "Accuracy", .x_label = "step", .y_label = "accuracy, %"};
  for (const char* split : {"train", "test"}) {
    Series losses{split, {}}, accuracies{split, {}};
    for (const Record& r : records_) {
      if (r.split != split) continue;
      losses.points.emplace_back(static_cast<double>(r.step), r.loss);
      if (!std::isnan(r.accuracy))
        accuracies.points.emplace_back(static_cast<double>(r.step), 100 * r.accuracy);
    }
    if (!losses.points.empty()) loss.series.push_back(std::move(losses));
    if (!accuracies.points.empty()) accuracy.series.push_back(std::move(accuracies));
  }
  std::vector<Panel> panels{std::move(loss)};
  if (!accuracy.series.empty()) panels.push_back(std::move(accuracy));
  plot_png(path, panels);
}

}  // namespace fleetx::train
