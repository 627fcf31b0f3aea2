#include "fleetx/data/image_list.h"

#include <gtest/gtest.h>
#include <turbojpeg.h>

#include <cmath>

#include "fleetx/base/file.h"
#include "fleetx/data/jpeg.h"
#include "fleetx/data/loader.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using testing::TempDir;
constexpr auto kCorrupt = Error::Kind::kCorrupt;

// Smooth, so that JPEG keeps it nearly as it is.
Image picture(int width, int height, int hue = 0) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      uint8_t* p = image.pixel(x, y);
      p[0] = static_cast<uint8_t>(255 * x / width);
      p[1] = static_cast<uint8_t>(255 * y / height);
      p[2] = static_cast<uint8_t>(hue);
    }
  return image;
}

TEST(Jpeg, SurvivesTheWayThereAndBack) {
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

TEST(Jpeg, InkBecomesLight) {
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

class Lists : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string list;
    for (int i = 0; i < 6; ++i) {
      const std::string name = str("p", i, ".jpg");
      write_file(dir_ / name, encode_jpeg(picture(300, 200, 40 * i), 95));
      list += str(name, i == 2 ? "\t " : " ", i % 3, i == 3 ? "\r\n\n" : "\n");
    }
    write_file(dir_ / "train.txt", list);
  }
  const TempDir dir_;
};

TEST_F(Lists, ValidationCutsTheMiddle) {
  const auto list = std::make_shared<ImageList>(ImageListOptions{
      .list = dir_ / "train.txt", .size = 56, .resize = 64, .norm = {{0, 0, 0}, {1, 1, 1}}});
  EXPECT_EQ(list->size(), 6);
  EXPECT_EQ(list->classes(), 3);
  Loader loader(list, {.batch = 6, .threads = 2});
  const Batch batch = loader.next();
  ASSERT_EQ(batch.at("image").shape(), (Shape{6, 3, 56, 56}));
  const auto labels = batch.at("label").data<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(labels.begin(), labels.end()),
            (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  // Rows and columns of the central 175 x 175 pixels of 300 x 200.
  const float* image = batch.at("image").data<float>().data();
  EXPECT_NEAR(image[28 * 56 + 0], (62.5 + 1.5) / 300, 0.02);
  EXPECT_NEAR(image[28 * 56 + 55], (237.5 - 1.5) / 300, 0.02);
  EXPECT_NEAR(image[56 * 56 + 28], (12.5 + 1.5) / 200, 0.02);
  EXPECT_NEAR(image[5 * 3 * 56 * 56 + 2 * 56 * 56 + 1500], 200 / 255.0, 0.02);
}

TEST_F(Lists, AugmentationIsAFunctionOfSeedEpochAndSample) {
  const auto list = std::make_shared<ImageList>(
      ImageListOptions{.list = dir_ / "train.txt", .augment = true, .size = 32});
  const auto image = [&](SampleId id) {
    std::vector<float> pixels(3 * 32 * 32);
    int64_t label = -1;
    void* out[] = {pixels.data(), &label};
    list->read(id, out);
    EXPECT_EQ(label, id.index % 3);
    return pixels;
  };
  EXPECT_EQ(image({1, 0, 7}), image({1, 0, 7}));
  EXPECT_NE(image({1, 0, 7}), image({1, 1, 7}));
  EXPECT_NE(image({1, 0, 7}), image({1, 0, 8}));
  EXPECT_NE(image({1, 0, 7}), image({4, 0, 7}));
}

TEST_F(Lists, MistakesNameFileAndLine) {
  const auto open = [&](const std::string& text, int64_t classes = 0) {
    write_file(dir_ / "bad.txt", text);
    return ImageList({.list = dir_ / "bad.txt", .size = 8, .resize = 8, .classes = classes});
  };
  expect_error(kCorrupt, {"bad.txt:2", "`p1.jpg`"}, [&] { open("p0.jpg 1\np1.jpg\n"); });
  expect_error(kCorrupt, {"bad.txt:1", "p0.jpg x"}, [&] { open("p0.jpg x\n"); });
  expect_error(kCorrupt, {"bad.txt:1", "-1"}, [&] { open("p0.jpg -1\n"); });
  expect_error(kCorrupt, {"bad.txt:2", "label 5", "2"}, [&] { open("p0.jpg 1\np1.jpg 5", 2); });
  expect_error(kCorrupt, {"bad.txt", "no picture"}, [&] { open("\n\n"); });
  expect_error(Error::Kind::kInvalidArgument, {"absent.txt"},
               [&] { ImageList({.list = dir_ / "absent.txt"}); });

  std::vector<float> pixels(3 * 8 * 8);
  int64_t label = 0;
  void* out[] = {pixels.data(), &label};
  write_file(dir_ / "cut.jpg", read_file(dir_ / "p1.jpg").substr(0, 1200));
  const ImageList list(
      {.list = (open("cut.jpg 1\ngone.jpg 0\n"), dir_ / "bad.txt"), .size = 8, .resize = 8});
  expect_error(kCorrupt, {"bad.txt:1", "cut.jpg", "damaged"}, [&] { list.read({0, 0, 0}, out); });
  expect_error(Error::Kind::kInvalidArgument, {"bad.txt:2", "gone.jpg"}, [&] {
    list.read({1, 0, 0}, out);
  });
}

}  // namespace
}  // namespace fleetx::data
