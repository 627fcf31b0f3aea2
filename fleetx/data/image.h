// Images in memory, and their preprocessing for a network: crop, resize, mirror and normalise in
// one pass.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fleetx::data {

// 8-bit RGB, rows from the top, no padding.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;

  Image() = default;
  Image(int w, int h)
      : width(w), height(h), rgb(static_cast<size_t>(w) * static_cast<size_t>(h) * 3) {}
  uint8_t* pixel(int x, int y) {
    return &rgb[(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * 3];
  }
  const uint8_t* pixel(int x, int y) const { return const_cast<Image*>(this)->pixel(x, y); }
};

// A rectangle in pixels with fractional borders.
struct Crop {
  float left = 0, top = 0, width = 0, height = 0;
  bool mirror = false;  // horizontally
};

// Of red, green and blue, for values in [0, 1].
struct Normalization {
  std::array<float, 3> mean{0.485f, 0.456f, 0.406f};
  std::array<float, 3> deviation{0.229f, 0.224f, 0.225f};
};

// The random crop of a width x height picture for training: a random share of the area
// (min_area to 1) of random aspect (3/4 to 4/3), mirrored half the time. `random` holds uniform
// numbers in [0, 1).
inline constexpr int kCropNumbers = 42;
Crop random_crop(int width, int height, float min_area,
                 const std::array<float, kCropNumbers>& random);
// The centre crop of size x size pixels after the short side was resized to `resize` pixels.
Crop center_crop(int width, int height, int resize, int size);

// Writes the cropped part as size x size pixels, bilinear, f32 [3,size,size], normalised.
void resample(const Image& image, const Crop& crop, int size, const Normalization& norm,
              float* out);

}  // namespace fleetx::data
