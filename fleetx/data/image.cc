#include "fleetx/data/image.h"

#include <algorithm>
#include <cmath>

#include "fleetx/base/simd.h"

namespace fleetx::data {
namespace {

// The source pixels of one output pixel along one axis.
struct Tap {
  int first, second;  // pixel numbers
  float weight;       // of the second
};

// The centres of `size` output pixels spread over [start, start + length), with the border
// repeated.
std::vector<Tap> taps_of(float start, float length, int size, int limit) {
  std::vector<Tap> taps(static_cast<size_t>(size));
  const float step = length / static_cast<float>(size);
  for (int i = 0; i < size; ++i) {
    const float at = start + (static_cast<float>(i) + 0.5f) * step - 0.5f;
    const float clamped = std::clamp(at, 0.0f, static_cast<float>(limit - 1));
    const int first = std::min(static_cast<int>(clamped), limit - 1);
    taps[static_cast<size_t>(i)] = {first, std::min(first + 1, limit - 1),
                                    clamped - static_cast<float>(first)};
  }
  return taps;
}

}  // namespace

Crop random_crop(int width, int height, float min_area,
                 const std::array<float, kCropNumbers>& random) {
  const float w = static_cast<float>(width), h = static_cast<float>(height);
  const bool mirror = random[0] < 0.5f;
  // Up to ten tries, as is usual: a crop that does not fit the picture is drawn again.
  for (size_t i = 1; i + 4 <= kCropNumbers; i += 4) {
    const float area = w * h * (min_area + (1 - min_area) * random[i]);
    const float aspect = std::exp(std::log(4.0f / 3.0f) * (2 * random[i + 1] - 1));
    const float cw = std::sqrt(area * aspect), ch = std::sqrt(area / aspect);
    if (cw <= w && ch <= h)
      return {(w - cw) * random[i + 2], (h - ch) * random[i + 3], cw, ch, mirror};
  }
  const float cw = std::min(w, h * 4 / 3), ch = std::min(h, w * 4 / 3);
  return {(w - cw) / 2, (h - ch) / 2, cw, ch, mirror};
}

Crop center_crop(int width, int height, int resize, int size) {
  const float w = static_cast<float>(width), h = static_cast<float>(height);
  const float side = std::min(w, h) * static_cast<float>(size) / static_cast<float>(resize);
  return {(w - side) / 2, (h - side) / 2, side, side, false};
}

void resample(const Image& image, const Crop& crop, int size, const Normalization& norm,
              float* out) {
  auto columns = taps_of(crop.left, crop.width, size, image.width);
  if (crop.mirror) std::reverse(columns.begin(), columns.end());
  const auto rows = taps_of(crop.top, crop.height, size, image.height);
  const int first = std::min(columns.front().first, columns.back().first);
  const int last = std::max(columns.front().second, columns.back().second);
  const int n = (last - first + 1) * 3;
  for (Tap& t : columns) {
    t.first = (t.first - first) * 3;
    t.second = (t.second - first) * 3;
  }
  std::array<float, 3> scale, shift;
  for (size_t c = 0; c < 3; ++c) {
    scale[c] = 1.0f / (255.0f * norm.deviation[c]);
    shift[c] = norm.mean[c] / norm.deviation[c];
  }
  std::vector<float> blended(static_cast<size_t>(n));
  const int64_t plane = int64_t{size} * size;
  for (int y = 0; y < size; ++y) {
    const Tap& row = rows[static_cast<size_t>(y)];
    const uint8_t* upper = image.pixel(first, row.first);
    const uint8_t* lower = image.pixel(first, row.second);
    const Tap* taps = columns.data();
    float* line = blended.data();
    float* to = out + int64_t{y} * size;
    const float weight = row.weight;
    vectorized([=] {
      for (int i = 0; i < n; ++i) {
        const float a = upper[i], b = lower[i];
        line[i] = a + weight * (b - a);
      }
      for (int c = 0; c < 3; ++c) {
        const float factor = scale[static_cast<size_t>(c)], offset = shift[static_cast<size_t>(c)];
        for (int x = 0; x < size; ++x) {
          const float a = line[taps[x].first + c], b = line[taps[x].second + c];
          to[c * plane + x] = (a + taps[x].weight * (b - a)) * factor - offset;
        }
      }
    });
  }
}

}  // namespace fleetx::data
