// Curves as a PNG picture: panels side by side, each with axes, ticks, grid and a legend.
//
//   plot_png("curves.png", {{.title = "Loss", .x_label = "step", .series = {{"train", points}}}});
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fleetx::train {

struct Series {
  std::string label;
  std::vector<std::pair<double, double>> points;  // by x; points that are not finite are left out
};

struct Panel {
  std::string title = {};
  std::string x_label = {};
  std::string y_label = {};
  std::vector<Series> series = {};
  bool from_zero = false;  // the y axis includes 0
};

struct PlotOptions {
  int width = 1280;
  int height = 520;
};

void plot_png(const std::string& path, const std::vector<Panel>& panels, PlotOptions options = {});

// Round numbers (1, 2 or 5 times a power of ten apart), about `count` of them, inside [low, high].
std::vector<double> ticks_of(double low, double high, int count);
std::string tick_label(double value, double step);  // 0.25, 1500, 20k, 1e-05

}  // namespace fleetx::train
