#include "fleetx/data/jpeg.h"

#include <gtest/gtest.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>

#include "fleetx/base/rng.h"
#include "tests/data/picture.h"
#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

using Error::Kind::kCorrupt;
using testing::expect_error;
using testing::picture;

TEST(Jpeg, RoundTrip) {
  const Image image = picture(200, 120, 90);
  const std::string bytes = encode_jpeg(image, 95);
  JpegReader jpeg(bytes, "p");
  EXPECT_EQ(jpeg.width(), 200);
  EXPECT_EQ(jpeg.height(), 120);
  const Image back = jpeg.decode();
  ASSERT_EQ(back.rgb.size(), image.rgb.size());
  double error = 0;
  for (size_t i = 0; i < image.rgb.size(); ++i) error += std::abs(back.rgb[i] - image.rgb[i]);
  EXPECT_LT(error / static_cast<double>(image.rgb.size()), 2.0);
  const Image quarter = jpeg.decode(4);
  EXPECT_EQ(quarter.width, 50);
  EXPECT_NEAR(quarter.pixel(25, 15)[0], image.pixel(100, 60)[0], 5);
}

TEST(Jpeg, CmykBecomesRgb) {
  // 8 x 8 pixels of full cyan with half of the black, in Adobe's inverted numbers.
  std::vector<uint8_t> inks;
  for (int i = 0; i < 64; ++i) inks.insert(inks.end(), {0, 255, 255, 128});
  unsigned char* raw = nullptr;
  unsigned long bytes = 0;  // NOLINT: turbojpeg's own type
  const tjhandle codec = tjInitCompress();
  ASSERT_EQ(tjCompress2(codec, inks.data(), 8, 0, 8, TJPF_CMYK, &raw, &bytes, TJSAMP_444, 100, 0),
            0);
  const Image image = JpegReader({reinterpret_cast<char*>(raw), bytes}, "ink").decode();
  tjFree(raw);
  tjDestroy(codec);
  EXPECT_NEAR(image.pixel(4, 4)[0], 0, 3);
  EXPECT_NEAR(image.pixel(4, 4)[1], 128, 3);
  EXPECT_NEAR(image.pixel(4, 4)[2], 128, 3);
}

TEST(Jpeg, DamageIsAnError) {
  const std::string good = encode_jpeg(picture(64, 64));
  expect_error(kCorrupt, {"p.jpg"}, [] { JpegReader("", "p.jpg").decode(); });
  expect_error(kCorrupt, {"p.jpg", "not a JPEG"},
               [] { JpegReader("GIF89a....", "p.jpg").decode(); });
  expect_error(kCorrupt, {"p.jpg", "damaged"}, [&] {
    JpegReader(std::string_view(good).substr(0, good.size() / 2), "p.jpg").decode();
  });
  std::string huge = good;
  const size_t sof = huge.find("\xff\xc0");
  for (size_t i = 5; i < 9; ++i) huge[sof + i] = '\xf0';
  expect_error(kCorrupt, {"61680 x 61680", "limit"}, [&] { JpegReader(huge, "p.jpg").decode(); });
}

std::string encode(const Image& image, int subsampling, int flags) {
  unsigned char* raw = nullptr;
  unsigned long bytes = 0;  // NOLINT: turbojpeg's own type
  const tjhandle codec = tjInitCompress();
  EXPECT_EQ(tjCompress2(codec, image.rgb.data(), image.width, 0, image.height, TJPF_RGB, &raw,
                        &bytes, subsampling, 90, flags),
            0);
  std::string text(reinterpret_cast<char*>(raw), bytes);
  tjFree(raw);
  tjDestroy(codec);
  return text;
}

// Colours that change from pixel to pixel, so that a wrong neighbour shows.
Image rough(int width, int height) {
  Image image(width, height);
  const Philox random(5, 6);
  for (size_t i = 0; i < image.rgb.size(); ++i)
    image.rgb[i] = static_cast<uint8_t>(random.bits(i / 7) >> 24);
  return image;
}

TEST(Jpeg, APartHasThePixelsOfTheWhole) {
  constexpr int kSize = 33;
  int smaller = 0, cases = 0;
  for (const int subsampling : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY, TJSAMP_440})
    for (const int flags : {0, TJFLAG_PROGRESSIVE})
      for (const auto& [width, height] : {std::pair{203, 151}, {64, 200}, {17, 9}}) {
        const std::string bytes = encode(rough(width, height), subsampling, flags);
        for (uint64_t i = 0; i < 25; ++i) {
          const Philox random(9, i);
          const float w = static_cast<float>(width), h = static_cast<float>(height);
          Crop crop{.mirror = i % 2 == 0};
          crop.width = w * (0.1f + 0.9f * random.uniform(0));
          crop.height = h * (0.1f + 0.9f * random.uniform(1));
          crop.left = (w - crop.width) * random.uniform(2);
          crop.top = (h - crop.height) * random.uniform(3);
          const int reduce = 1 << (i % 4);
          const Image whole = JpegReader(bytes, "whole").decode(reduce);
          const float x = static_cast<float>(whole.width) / w;
          const float y = static_cast<float>(whole.height) / h;
          std::vector<float> want(3 * kSize * kSize), got(want.size());
          resample(whole,
                   {crop.left * x, crop.top * y, crop.width * x, crop.height * y, crop.mirror},
                   kSize, {{0, 0, 0}, {1, 1, 1}}, want.data());
          Image part;
          JpegReader jpeg(bytes, "part");
          const Crop moved = jpeg.decode_part(crop, reduce, part);
          resample(part, moved, kSize, {{0, 0, 0}, {1, 1, 1}}, got.data());
          float worst = 0;
          for (size_t k = 0; k < got.size(); ++k)
            worst = std::max(worst, std::abs(got[k] - want[k]));
          EXPECT_LT(worst, 1e-3) << "subsampling " << subsampling << " flags " << flags << " case "
                                 << i << " reduce " << reduce;
          smaller += part.rgb.size() < whole.rgb.size();
          ++cases;
        }
      }
  EXPECT_GT(smaller, cases / 2) << "parts are what makes it fast";
}

TEST(Jpeg, IsDecodedTwice) {
  const std::string bytes = encode_jpeg(rough(60, 40));
  JpegReader jpeg(bytes, "p");
  const Image once = jpeg.decode(2), again = jpeg.decode(2);
  EXPECT_EQ(once.rgb, again.rgb);
  EXPECT_EQ(jpeg.decode().width, 60);
}

TEST(Jpeg, DamageBelowTheCropDoesNotMatter) {
  const std::string bytes = encode_jpeg(rough(200, 400));
  const std::string cut = bytes.substr(0, bytes.size() * 3 / 4);
  Image part, whole;
  JpegReader jpeg(cut, "cut.jpg"), good(bytes, "good.jpg");
  jpeg.decode_part({10, 10, 100, 100}, 1, part);
  good.decode_part({10, 10, 100, 100}, 1, whole);
  EXPECT_EQ(part.rgb, whole.rgb);
  expect_error(kCorrupt, {"cut.jpg", "damaged"}, [&] {
    jpeg.decode_part({10, 300, 100, 100}, 1, part);
  });
}

}  // namespace
}  // namespace fleetx::data
