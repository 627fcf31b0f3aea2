// Draws anti-aliased shapes on a square f32 RGB image, for synthetic pictures.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "fleetx/base/rng.h"
#include "fleetx/data/image.h"

namespace fleetx::data {

// Random numbers drawn one after the other from one counter-based stream.
class Dice {
 public:
  Dice(uint64_t seed, uint64_t stream) : random_(seed, stream) {}
  float unit() {
    if (next_ % 4 == 0) block_ = random_.block(next_ / 4);
    return Philox::to_unit(block_[next_++ % 4]);
  }
  float between(float low, float high) { return low + (high - low) * unit(); }
  int below(int n) { return std::min(static_cast<int>(unit() * static_cast<float>(n)), n - 1); }
  bool chance(float p) { return unit() < p; }
  float angle() { return between(0.0f, 6.2831853f); }

 private:
  Philox random_;
  std::array<uint32_t, 4> block_{};
  uint64_t next_ = 0;
};

struct Color {
  float r = 0, g = 0, b = 0;

  Color operator*(float f) const { return {r * f, g * f, b * f}; }
  Color operator+(const Color& o) const { return {r + o.r, g + o.g, b + o.b}; }
  static Color hsv(float hue, float saturation, float value);
  static Color mix(const Color& a, const Color& b, float share_of_b) {
    return a * (1 - share_of_b) + b * share_of_b;
  }
  float distance(const Color& o) const {
    return std::sqrt((r - o.r) * (r - o.r) + (g - o.g) * (g - o.g) + (b - o.b) * (b - o.b));
  }
};

// Coverage of a pixel whose centre is `distance` pixels inside an edge that is `soft` pixels wide.
inline float coverage(float distance, float soft = 1.0f) {
  return std::clamp(distance / soft + 0.5f, 0.0f, 1.0f);
}

class Canvas {
 public:
  explicit Canvas(int size)
      : size_(size), rgb_(static_cast<size_t>(size) * static_cast<size_t>(size)) {}

  int size() const { return size_; }
  Color& at(int x, int y) {
    return rgb_[static_cast<size_t>(y) * static_cast<size_t>(size_) + static_cast<size_t>(x)];
  }

  // Blends shade(dx, dy) -> {color, alpha} over every pixel within `radius` of (cx, cy); dx and dy
  // are measured from there to the centre of the pixel.
  template <class Shade>
  void paint(float cx, float cy, float radius, const Shade& shade) {
    const int left = std::max(0, static_cast<int>(cx - radius - 1));
    const int right = std::min(size_, static_cast<int>(cx + radius + 2));
    const int top = std::max(0, static_cast<int>(cy - radius - 1));
    const int bottom = std::min(size_, static_cast<int>(cy + radius + 2));
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x) {
        const auto [color, alpha] =
            shade(static_cast<float>(x) + 0.5f - cx, static_cast<float>(y) + 0.5f - cy);
        if (alpha > 0) at(x, y) = Color::mix(at(x, y), color, alpha);
      }
  }

  void gradient(const Color& from, const Color& to, float angle);
  void radial(const Color& inner, const Color& outer, float cx, float cy);
  // Multiplies brightness by 1 +- strength, in patches of about `patch` pixels and finer ones.
  void texture(Dice& dice, float patch, float strength);
  // A line from (x0, y0) to (x1, y1) with round ends.
  void line(float x0, float y0, float x1, float y1, float width, const Color& color);

  // To 8 bits, with noise of this standard deviation (of 1) in every channel.
  Image finish(const Philox& random, float noise) const;

 private:
  int size_;
  std::vector<Color> rgb_;
};

}  // namespace fleetx::data
