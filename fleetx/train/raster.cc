#include "fleetx/train/raster.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "fleetx/base/error.h"
#include "fleetx/train/font.h"

namespace fleetx::train {
namespace {

float distance_to_segment(Point p, Point a, Point b) {
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float length2 = dx * dx + dy * dy;
  const float t =
      length2 > 0 ? std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0f, 1.0f) : 0.0f;
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

struct Indexed {
  std::vector<uint8_t> pixels;  // numbers of colors
  std::vector<uint8_t> colors;  // red, green, blue of each
};

// Shades of smooth edges are rounded until 256 colors are enough: the file is a third as large.
Indexed with_few_colors(const std::vector<uint8_t>& rgb) {
  for (int step = 4;; step *= 2) {
    Indexed out;
    std::map<std::array<uint8_t, 3>, uint8_t> known;
    for (size_t i = 0; i < rgb.size(); i += 3) {
      std::array<uint8_t, 3> color{};
      for (size_t c = 0; c < 3; ++c)
        color[c] = static_cast<uint8_t>(std::min(255, (rgb[i + c] + step / 2) / step * step));
      auto place = known.find(color);
      if (place == known.end()) {
        if (known.size() == 256) break;
        place = known.emplace(color, static_cast<uint8_t>(known.size())).first;
        out.colors.insert(out.colors.end(), color.begin(), color.end());
      }
      out.pixels.push_back(place->second);
    }
    if (out.pixels.size() == rgb.size() / 3) return out;
  }
}

}  // namespace

Raster::Raster(int width, int height) : width_(width), height_(height) {
  check_arg(width >= 1 && height >= 1 && width <= 16384 && height <= 16384, "a picture of ", width,
            " x ", height, " pixels is not possible");
  rgb_.assign(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, 255.0f);
}

void Raster::blend(int x, int y, const Ink& ink, float coverage) {
  const float share = ink.alpha * coverage;
  float* p =
      &rgb_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  p[0] += share * (static_cast<float>(ink.r) - p[0]);
  p[1] += share * (static_cast<float>(ink.g) - p[1]);
  p[2] += share * (static_cast<float>(ink.b) - p[2]);
}

void Raster::strokes(const std::vector<std::vector<Point>>& lines, float width, const Ink& ink) {
  // Thin strokes keep one pixel and get lighter instead, as ink on paper would look from afar.
  const float strength = std::min(1.0f, width), radius = std::max(1.0f, width) / 2;
  float left = 1e9f, right = -1e9f, top = 1e9f, bottom = -1e9f;
  for (const auto& line : lines)
    for (const Point& p : line) {
      left = std::min(left, p.x), right = std::max(right, p.x);
      top = std::min(top, p.y), bottom = std::max(bottom, p.y);
    }
  if (left > right) return;
  const auto clip = [&](float v, int limit) {
    return std::clamp(static_cast<int>(std::floor(v)), 0, limit);
  };
  const int x0 = clip(left - radius - 1, width_), x1 = clip(right + radius + 2, width_);
  const int y0 = clip(top - radius - 1, height_), y1 = clip(bottom + radius + 2, height_);
  std::vector<float> mask(static_cast<size_t>(std::max(0, x1 - x0)) *
                          static_cast<size_t>(std::max(0, y1 - y0)));
  const auto draw = [&](Point a, Point b) {
    const int sx0 = std::max(x0, clip(std::min(a.x, b.x) - radius - 1, width_));
    const int sx1 = std::min(x1, clip(std::max(a.x, b.x) + radius + 2, width_));
    const int sy0 = std::max(y0, clip(std::min(a.y, b.y) - radius - 1, height_));
    const int sy1 = std::min(y1, clip(std::max(a.y, b.y) + radius + 2, height_));
    for (int y = sy0; y < sy1; ++y)
      for (int x = sx0; x < sx1; ++x) {
        const Point p{static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f};
        const float cover = std::clamp(radius + 0.5f - distance_to_segment(p, a, b), 0.0f, 1.0f);
        float& m = mask[static_cast<size_t>(y - y0) * static_cast<size_t>(x1 - x0) +
                        static_cast<size_t>(x - x0)];
        m = std::max(m, cover);
      }
  };
  for (const auto& line : lines) {
    if (line.size() == 1) draw(line[0], line[0]);
    for (size_t i = 0; i + 1 < line.size(); ++i) draw(line[i], line[i + 1]);
  }
  size_t at = 0;
  for (int y = y0; y < y1; ++y)
    for (int x = x0; x < x1; ++x, ++at)
      if (mask[at] > 0) blend(x, y, ink, mask[at] * strength);
}

void Raster::polyline(std::span<const Point> points, float width, const Ink& ink) {
  strokes({{points.begin(), points.end()}}, width, ink);
}

void Raster::disc(Point center, float radius, const Ink& ink) {
  strokes({{center}}, 2 * radius, ink);
}

void Raster::rectangle(float left, float top, float right, float bottom, const Ink& ink) {
  const auto overlap = [](float a, float b, int i) {
    return std::clamp(std::min(b, static_cast<float>(i + 1)) - std::max(a, static_cast<float>(i)),
                      0.0f, 1.0f);
  };
  for (int y = std::max(0, static_cast<int>(top));
       y < std::min(height_, static_cast<int>(bottom) + 1); ++y)
    for (int x = std::max(0, static_cast<int>(left));
         x < std::min(width_, static_cast<int>(right) + 1); ++x)
      blend(x, y, ink, overlap(left, right, x) * overlap(top, bottom, y));
}

void Raster::text(Point at, std::string_view text, float size, const Ink& ink, Align align,
                  float stroke) {
  const float scale = size / kCapital;
  if (align != Align::kLeft)
    at.x -= text_width(text, size) * (align == Align::kRight ? 1.0f : 0.5f);
  for (const char c : text) {
    const Glyph& glyph = glyph_of(c);
    auto lines = glyph.lines;
    for (auto& line : lines)
      for (Point& p : line) p = {at.x + p.x * scale, at.y - p.y * scale};
    strokes(lines, size * stroke, ink);
    at.x += (glyph.width + kLetterGap) * scale;
  }
}

void Raster::text_upwards(Point at, std::string_view text, float size, const Ink& ink) {
  const float scale = size / kCapital;
  float up = at.y + text_width(text, size) / 2;
  for (const char c : text) {
    const Glyph& glyph = glyph_of(c);
    auto lines = glyph.lines;
    for (auto& line : lines)
      for (Point& p : line) p = {at.x - p.y * scale, up - p.x * scale};
    strokes(lines, size * 0.13f, ink);
    up -= (glyph.width + kLetterGap) * scale;
  }
}

void Raster::save_png(const std::string& path) const {
  std::vector<uint8_t> bytes(rgb_.size());
  std::transform(rgb_.begin(), rgb_.end(), bytes.begin(),
                 [](float v) { return static_cast<uint8_t>(std::clamp(v + 0.5f, 0.0f, 255.0f)); });
  const Indexed drawn = with_few_colors(bytes);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width_);
  image.height = static_cast<png_uint_32>(height_);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = static_cast<png_uint_32>(drawn.colors.size() / 3);
  const int done =
      png_image_write_to_file(&image, path.c_str(), 0, drawn.pixels.data(), 0, drawn.colors.data());
  check_arg(done != 0, "cannot write ", path, ": ", image.message);
}

float text_width(std::string_view text, float size) {
  float sum = 0;
  for (const char c : text) sum += glyph_of(c).width + kLetterGap;
  return text.empty() ? 0 : (sum - kLetterGap) * size / kCapital;
}

}  // namespace fleetx::train
