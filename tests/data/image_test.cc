#include "fleetx/data/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fleetx/base/rng.h"

namespace fleetx::data {
namespace {

constexpr Normalization kNone{{0, 0, 0}, {1, 1, 1}};

Image ramp(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      uint8_t* p = image.pixel(x, y);
      p[0] = static_cast<uint8_t>(10 * x);
      p[1] = static_cast<uint8_t>(20 * y);
      p[2] = 77;
    }
  return image;
}

std::vector<float> sample(const Image& image, const Crop& crop, int size,
                          const Normalization& norm = kNone) {
  std::vector<float> out(static_cast<size_t>(3 * size * size));
  resample(image, crop, size, norm, out.data());
  return out;
}

TEST(Image, IdentityResizeIsExact) {
  const Image image = ramp(8, 8);
  const auto out = sample(image, {0, 0, 8, 8}, 8);
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 8; ++x)
        ASSERT_NEAR(out[static_cast<size_t>((c * 8 + y) * 8 + x)], image.pixel(x, y)[c] / 255.0f,
                    1e-6);
}

TEST(Image, MirrorAndNormalisation) {
  const auto out = sample(ramp(8, 8), {0, 0, 8, 8, true}, 8, {{0.5f, 0, 0}, {0.25f, 1, 2}});
  EXPECT_NEAR(out[0], (70 / 255.0f - 0.5f) / 0.25f, 1e-5);
  EXPECT_NEAR(out[7], (0 - 0.5f) / 0.25f, 1e-5);
  EXPECT_NEAR(out[128], 77 / 255.0f / 2, 1e-6);
}

TEST(Image, BilinearOnALinearPictureIsExact) {
  // Inside the border a bilinear resize reproduces a linear function at the centres of the pixels.
  const auto out = sample(ramp(20, 12), {2.5f, 1.5f, 12, 8}, 5);
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 5; ++x) {
      const float at_x = 2.5f + (static_cast<float>(x) + 0.5f) * 12 / 5 - 0.5f;
      const float at_y = 1.5f + (static_cast<float>(y) + 0.5f) * 8 / 5 - 0.5f;
      EXPECT_NEAR(out[static_cast<size_t>(y * 5 + x)], 10 * at_x / 255, 1e-5);
      EXPECT_NEAR(out[static_cast<size_t>(25 + y * 5 + x)], 20 * at_y / 255, 1e-5);
    }
}

TEST(Image, EnlargingRepeatsTheBorder) {
  const auto out = sample(ramp(2, 1), {0, 0, 2, 1}, 8);
  EXPECT_FLOAT_EQ(out[0], 0.0f);
  EXPECT_NEAR(out[7], 10 / 255.0f, 1e-6);
}

TEST(Image, CenterCropIsThatOfTheRecipe) {
  const Crop c = center_crop(500, 375, 256, 224);
  EXPECT_NEAR(c.width, 375 * 224 / 256.0, 1e-3);
  EXPECT_NEAR(c.left + c.width / 2, 250, 1e-3);
  EXPECT_NEAR(c.top + c.height / 2, 187.5, 1e-3);
}

TEST(Image, RandomCropsStayInsideAndCoverTheRange) {
  float least = 1, most = 0, narrow = 10, wide = 0;
  int mirrored = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    std::array<float, kCropNumbers> numbers;
    const Philox random(1, i);
    for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = random.uniform(k);
    const Crop c = random_crop(500, 375, 0.08f, numbers);
    ASSERT_GE(c.left, 0);
    ASSERT_GE(c.top, 0);
    ASSERT_LE(c.left + c.width, 500.01f);
    ASSERT_LE(c.top + c.height, 375.01f);
    const float area = c.width * c.height / (500.0f * 375), aspect = c.width / c.height;
    least = std::min(least, area);
    most = std::max(most, area);
    narrow = std::min(narrow, aspect);
    wide = std::max(wide, aspect);
    mirrored += c.mirror;
  }
  EXPECT_NEAR(least, 0.08, 0.01);
  EXPECT_GT(most, 0.95);
  EXPECT_NEAR(narrow, 0.75, 0.01);
  EXPECT_NEAR(wide, 4.0 / 3, 0.01);
  EXPECT_NEAR(mirrored, 1000, 100);
}

TEST(Image, NarrowStripIsCenterCropped) {
  std::array<float, kCropNumbers> ones;
  ones.fill(0.999f);
  const Crop c = random_crop(1000, 10, 0.5f, ones);
  EXPECT_NEAR(c.height, 10, 1e-3);
  EXPECT_NEAR(c.width, 40 / 3.0, 1e-3);
  EXPECT_NEAR(c.left + c.width / 2, 500, 1e-3);
}

}  // namespace
}  // namespace fleetx::data
