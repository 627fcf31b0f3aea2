#include "fleetx/data/canvas.h"

#include <cstring>

#include "fleetx/base/simd.h"

namespace fleetx::data {

static_assert(sizeof(Color) == 3 * sizeof(float), "pixels are read as plain floats");

Color Color::hsv(float hue, float saturation, float value) {
  const float h = (hue - std::floor(hue)) * 6.0f;
  const auto channel = [&](float shift) {
    const float k = std::fmod(shift + h, 6.0f);
    return value * (1 - saturation * std::clamp(std::min(k, 4 - k), 0.0f, 1.0f));
  };
  return {channel(5), channel(3), channel(1)};
}

void Canvas::gradient(const Color& from, const Color& to, float angle) {
  const float n = static_cast<float>(size_);
  const float ux = std::cos(angle) / n, uy = std::sin(angle) / n;
  for (int y = 0; y < size_; ++y)
    for (int x = 0; x < size_; ++x) {
      const float t =
          0.5f + (static_cast<float>(x) - n / 2) * ux + (static_cast<float>(y) - n / 2) * uy;
      at(x, y) = Color::mix(from, to, std::clamp(t, 0.0f, 1.0f));
    }
}

void Canvas::radial(const Color& inner, const Color& outer, float cx, float cy) {
  const float scale = 1.2f / static_cast<float>(size_);
  for (int y = 0; y < size_; ++y)
    for (int x = 0; x < size_; ++x) {
      const float dx = static_cast<float>(x) - cx, dy = static_cast<float>(y) - cy;
      at(x, y) = Color::mix(inner, outer, std::min(1.0f, std::sqrt(dx * dx + dy * dy) * scale));
    }
}

void Canvas::texture(Dice& dice, float patch, float strength) {
  for (int octave = 0; octave < 3 && patch >= 2; ++octave, patch /= 3, strength *= 0.7f) {
    const int cells = static_cast<int>(static_cast<float>(size_) / patch) + 2;
    std::vector<float> lattice(static_cast<size_t>(cells * cells));
    for (float& v : lattice) v = dice.between(-strength, strength);
    std::vector<float> row(static_cast<size_t>(cells));
    for (int y = 0; y < size_; ++y) {
      const float fy = static_cast<float>(y) / patch;
      const int iy = static_cast<int>(fy);
      const float* upper = &lattice[static_cast<size_t>(iy * cells)];
      for (int i = 0; i < cells; ++i)
        row[static_cast<size_t>(i)] =
            upper[i] + (fy - static_cast<float>(iy)) * (upper[i + cells] - upper[i]);
      for (int x = 0; x < size_; ++x) {
        const float fx = static_cast<float>(x) / patch;
        const auto ix = static_cast<size_t>(fx);
        const float v = row[ix] + (fx - static_cast<float>(ix)) * (row[ix + 1] - row[ix]);
        Color& c = at(x, y);
        c = c * (1 + v);
      }
    }
  }
}

void Canvas::line(float x0, float y0, float x1, float y1, float width, const Color& color) {
  const float cx = (x0 + x1) / 2, cy = (y0 + y1) / 2;
  const float hx = (x1 - x0) / 2, hy = (y1 - y0) / 2;
  const float length2 = std::max(hx * hx + hy * hy, 1e-6f);
  paint(cx, cy, std::sqrt(length2) + width, [&](float dx, float dy) {
    const float t = std::clamp((dx * hx + dy * hy) / length2, -1.0f, 1.0f);
    const float ex = dx - t * hx, ey = dy - t * hy;
    const float distance = std::sqrt(ex * ex + ey * ey);
    return std::pair(color * (1.1f - 0.4f * distance / width), coverage(width / 2 - distance));
  });
}

Image Canvas::finish(const Philox& random, float noise) const {
  Image image(size_, size_);
  const size_t n = image.rgb.size();
  std::vector<uint16_t> bits(n + 8);
  for (size_t i = 0; i < n; i += 8) {
    const auto words = random.block(i / 8);
    std::memcpy(&bits[i], words.data(), sizeof words);
  }
  // The sum of two uniform bytes is round enough for grain; its standard deviation is 104.5.
  const float scale = noise * 255.0f / 104.5f;
  const auto* value = reinterpret_cast<const float*>(rgb_.data());
  vectorized([=, grain = bits.data(), out = image.rgb.data()] {
    for (size_t i = 0; i < n; ++i) {
      const auto sum = static_cast<float>((grain[i] & 255) + (grain[i] >> 8));
      const float v = value[i] * 255.0f + (sum - 255.0f) * scale + 0.5f;
      out[i] = static_cast<uint8_t>(static_cast<int>(std::min(std::max(v, 0.0f), 255.0f)));
    }
  });
  return image;
}

}  // namespace fleetx::data
