#include "fleetx/train/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "fleetx/base/error.h"
#include "fleetx/train/raster.h"

namespace fleetx::train {
namespace {

constexpr Ink kText{45, 50, 60}, kQuiet{105, 112, 125}, kGrid{228, 231, 236}, kAxis{150, 156, 166};
// So many that the strategies of one picture differ; the first ones are the farthest apart.
constexpr std::array<Ink, 12> kColors{Ink{36, 104, 196},  Ink{232, 119, 34},  Ink{44, 150, 94},
                                      Ink{178, 58, 112},  Ink{110, 86, 180},  Ink{130, 88, 56},
                                      Ink{28, 160, 190},  Ink{214, 39, 40},   Ink{190, 170, 20},
                                      Ink{110, 110, 110}, Ink{240, 120, 180}, Ink{120, 190, 70}};
constexpr float kSize = 9.5f;  // of the text
constexpr int kParts = 16;     // of a line between two points, to see what a legend covers

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
};

bool finite(const std::pair<double, double>& p) {
  return std::isfinite(p.first) && std::isfinite(p.second);
}

struct Frame {
  float left, top, right, bottom;
  Range x, y;

  Point at(double px, double py) const {
    return {left + static_cast<float>((px - x.low) / (x.high - x.low)) * (right - left),
            bottom - static_cast<float>((py - y.low) / (y.high - y.low)) * (bottom - top)};
  }
};

Frame frame_of(const Panel& panel, float left, float top, float right, float bottom) {
  Frame f{left, top, right, bottom, {}, {}};
  for (const Series& s : panel.series)
    for (const auto& p : s.points)
      if (finite(p)) {
        f.x.add(p.first);
        f.y.add(p.second);
      }
  if (panel.from_zero) f.y.add(0);
  if (f.x.low > f.x.high) f.x = {0, 1};
  if (f.y.low > f.y.high) f.y = {0, 1};
  if (f.x.low == f.x.high) f.x = {f.x.low - 0.5, f.x.high + 0.5};
  double margin = (f.y.high - f.y.low) * 0.06;
  if (margin == 0) margin = std::max(std::abs(f.y.high) * 0.1, 1e-6);
  f.y.high += margin;
  if (!panel.from_zero || f.y.low < 0) f.y.low -= margin;
  return f;
}

void draw_axes(Raster& out, const Panel& panel, const Frame& f) {
  const auto line = [&](Point a, Point b, float width, const Ink& ink) {
    const std::array points{a, b};
    out.polyline(points, width, ink);
  };
  const auto ys = ticks_of(f.y.low, f.y.high, 7), xs = ticks_of(f.x.low, f.x.high, 7);
  const double y_step = ys.size() > 1 ? ys[1] - ys[0] : 1,
               x_step = xs.size() > 1 ? xs[1] - xs[0] : 1;
  for (const double v : ys) {
    const float y = f.at(f.x.low, v).y;
    line({f.left, y}, {f.right, y}, 1, kGrid);
    out.text({f.left - 9, y + kSize / 2}, tick_label(v, y_step), kSize, kQuiet, Align::kRight);
  }
  for (const double v : xs) {
    const float x = f.at(v, f.y.low).x;
    line({x, f.top}, {x, f.bottom}, 1, kGrid);
    line({x, f.bottom}, {x, f.bottom + 5}, 1, kAxis);
    out.text({x, f.bottom + 11 + kSize}, tick_label(v, x_step), kSize, kQuiet, Align::kCenter);
  }
  line({f.left, f.top}, {f.left, f.bottom}, 1.2f, kAxis);
  line({f.left, f.bottom}, {f.right, f.bottom}, 1.2f, kAxis);
  out.text({f.left, f.top - 18}, panel.title, 13, kText, Align::kLeft, 0.17f);
  out.text({(f.left + f.right) / 2, f.bottom + 34 + kSize}, panel.x_label, kSize + 0.5f, kText,
           Align::kCenter);
  out.text_upwards({f.left - 52, (f.top + f.bottom) / 2}, panel.y_label, kSize + 0.5f, kText);
}

void draw_series(Raster& out, const Series& series, const Frame& f, const Ink& ink) {
  std::vector<Point> points;
  for (const auto& p : series.points)
    if (finite(p)) points.push_back(f.at(p.first, p.second));
  out.polyline(points, 2.2f, ink);
  if (points.size() > 30) return;
  for (const Point& p : points) {
    out.disc(p, 4.2f, {255, 255, 255});
    out.disc(p, 3.0f, ink);
  }
}

// In the corner where it covers the least of the curves.
void draw_legend(Raster& out, const Panel& panel, const Frame& f) {
  float width = 0;
  for (const Series& s : panel.series) width = std::max(width, text_width(s.label, kSize));
  width += 54;
  const float height = 20 * static_cast<float>(panel.series.size()) + 10;
  struct Corner {
    float left, top;
    int covered;
  };
  std::vector<Corner> corners;
  for (const float top : {f.top + 10, f.bottom - 10 - height})
    for (const float left : {f.right - 10 - width, f.left + 12}) corners.push_back({left, top, 0});
  const auto cover = [&](Point p) {
    for (Corner& c : corners)
      c.covered += p.x > c.left - 8 && p.x < c.left + width + 8 && p.y > c.top - 8 &&
                   p.y < c.top + height + 8;
  };
  for (const Series& s : panel.series) {
    Point last{};
    bool begun = false;
    for (const auto& point : s.points) {
      if (!finite(point)) continue;
      const Point p = f.at(point.first, point.second);
      // Lines count as points do, where there are few of these.
      for (int part = begun ? 1 : kParts; part <= kParts; ++part) {
        const float t = static_cast<float>(part) / kParts;
        cover({last.x + (p.x - last.x) * t, last.y + (p.y - last.y) * t});
      }
      last = p, begun = true;
    }
  }
  const Corner best = *std::min_element(corners.begin(), corners.end(),
                                        [](auto& a, auto& b) { return a.covered < b.covered; });
  out.rectangle(best.left, best.top, best.left + width, best.top + height, {255, 255, 255, 0.88f});
  for (size_t i = 0; i < panel.series.size(); ++i) {
    const float y = best.top + 15 + 20 * static_cast<float>(i);
    const Ink& ink = kColors[i % kColors.size()];
    const std::array sample{Point{best.left + 10, y}, Point{best.left + 34, y}};
    out.polyline(sample, 2.6f, ink);
    out.text({best.left + 44, y + kSize / 2}, panel.series[i].label, kSize, kText);
  }
}

}  // namespace

std::vector<double> ticks_of(double low, double high, int count) {
  if (!(high > low) || count < 1) return {low};
  const double rough = (high - low) / count, base = std::pow(10.0, std::floor(std::log10(rough)));
  double step = base * 10;
  for (const double factor : {1.0, 2.0, 5.0})
    if (base * factor >= rough * 0.999) {
      step = base * factor;
      break;
    }
  std::vector<double> out;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    out.push_back(i * step == 0 ? 0.0 : i * step);
  return out;
}

std::string tick_label(double value, double step) {
  char text[64];
  const double size = std::max(std::abs(value), std::abs(step));
  if (size >= 10000 && std::fmod(std::abs(step), 1000) == 0) {
    std::snprintf(text, sizeof text, "%.0fk", value / 1000);
  } else if (size >= 1e6 || std::abs(step) < 1e-4) {
    std::snprintf(text, sizeof text, "%.3g", value);
  } else {
    const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
    std::snprintf(text, sizeof text, "%.*f", digits, value);
  }
  return text;
}

void plot_png(const std::string& path, const std::vector<Panel>& panels, PlotOptions options) {
  check_arg(!panels.empty(), "plot: no panels");
  check_arg(options.width >= 200 * static_cast<int>(panels.size()) && options.height >= 160,
            "plot: ", options.width, " x ", options.height, " pixels are too few for ",
            panels.size(), " panels");
  Raster out(options.width, options.height);
  const float each = static_cast<float>(options.width) / static_cast<float>(panels.size());
  for (size_t i = 0; i < panels.size(); ++i) {
    const float left = each * static_cast<float>(i);
    const Frame f = frame_of(panels[i], left + 76, 56, left + each - 26,
                             static_cast<float>(options.height) - 62);
    draw_axes(out, panels[i], f);
    for (size_t s = 0; s < panels[i].series.size(); ++s)
      draw_series(out, panels[i].series[s], f, kColors[s % kColors.size()]);
    if (!panels[i].series.empty()) draw_legend(out, panels[i], f);
  }
  out.save_png(path);
}

}  // namespace fleetx::train
