// A small painter for diagrams: anti-aliased lines, discs, rectangles and text on white, saved as
// PNG. Coordinates are pixels from the top left; the centre of the first pixel is (0.5, 0.5).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::train {

struct Point {
  float x = 0, y = 0;
};

struct Ink {
  uint8_t r = 0, g = 0, b = 0;
  float alpha = 1;
};

enum class Align { kLeft, kCenter, kRight };

class Raster {
 public:
  Raster(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }

  // One stroke: where it crosses itself it is not darker.
  void polyline(std::span<const Point> points, float width, const Ink& ink);
  void disc(Point center, float radius, const Ink& ink);
  void rectangle(float left, float top, float right, float bottom, const Ink& ink);
  // `size` is the height of a capital; `at` lies on the base line.
  void text(Point at, std::string_view text, float size, const Ink& ink, Align align = Align::kLeft,
            float stroke = 0.13f);
  // The same from bottom to top, centred at `at`.
  void text_upwards(Point at, std::string_view text, float size, const Ink& ink);

  void save_png(const std::string& path) const;

 private:
  void strokes(const std::vector<std::vector<Point>>& lines, float width, const Ink& ink);
  void blend(int x, int y, const Ink& ink, float coverage);

  int width_, height_;
  std::vector<float> rgb_;
};

// The width of a text whose capitals are `size` high.
float text_width(std::string_view text, float size);

}  // namespace fleetx::train
