#include "fleetx/data/image_list.h"

#include <gtest/gtest.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "fleetx/base/file.h"
#include "fleetx/base/rng.h"
#include "fleetx/data/jpeg.h"
#include "fleetx/data/loader.h"
#include "tests/data/picture.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using Error::Kind::kCorrupt;
using testing::expect_error;
using testing::picture;
using testing::TempDir;

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

TEST_F(Lists, ValidationCropsTheCenter) {
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

// The same by the plain definition: the whole picture by turbojpeg, bilinear in double.
std::vector<double> reference(const std::string& bytes, const Crop& crop, int reduce, int size,
                              const Normalization& norm) {
  const tjhandle codec = tjInitDecompress();
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = 0, colors = 0;
  tjDecompressHeader3(codec, data, bytes.size(), &width, &height, &subsampling, &colors);
  const int w = (width + reduce - 1) / reduce, h = (height + reduce - 1) / reduce;
  std::vector<uint8_t> rgb(static_cast<size_t>(w * h * 3));
  EXPECT_EQ(tjDecompress2(codec, data, bytes.size(), rgb.data(), w, 0, h, TJPF_RGB, 0), 0);
  tjDestroy(codec);
  const double scale_x = static_cast<double>(w) / width, scale_y = static_cast<double>(h) / height;
  std::vector<double> out;
  for (size_t c = 0; c < 3; ++c)
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) {
        const int column = crop.mirror ? size - 1 - x : x;
        const double at_x = std::clamp(
            scale_x * (crop.left + (column + 0.5) * crop.width / size) - 0.5, 0.0, w - 1.0);
        const double at_y =
            std::clamp(scale_y * (crop.top + (y + 0.5) * crop.height / size) - 0.5, 0.0, h - 1.0);
        const int x0 = static_cast<int>(at_x), y0 = static_cast<int>(at_y);
        const int x1 = std::min(x0 + 1, w - 1), y1 = std::min(y0 + 1, h - 1);
        const auto pixel = [&](int px, int py) {
          return static_cast<double>(rgb[static_cast<size_t>(py * w + px) * 3 + c]);
        };
        const double fx = at_x - x0, fy = at_y - y0;
        const double value = (1 - fy) * ((1 - fx) * pixel(x0, y0) + fx * pixel(x1, y0)) +
                             fy * ((1 - fx) * pixel(x0, y1) + fx * pixel(x1, y1));
        out.push_back((value / 255 - norm.mean[c]) / norm.deviation[c]);
      }
  return out;
}

TEST_F(Lists, PixelsMatchTheReference) {
  Image rough(300, 200);
  for (size_t i = 0; i < rough.rgb.size(); ++i)
    rough.rgb[i] = static_cast<uint8_t>(128 + 60 * std::sin(0.02 * static_cast<double>(i)) +
                                        60 * std::cos(0.0007 * static_cast<double>(i)));
  const std::string bytes = encode_jpeg(rough);
  write_file(dir_ / "rough.jpg", bytes);
  write_file(dir_ / "one.txt", "rough.jpg 0\n");
  for (const int size : {224, 90, 40}) {
    for (const bool augment : {true, false}) {
      const ImageListOptions options{
          .list = dir_ / "one.txt", .augment = augment, .size = size, .resize = size * 8 / 7};
      const ImageList list(options);
      for (uint64_t seed = 0; seed < 6; ++seed) {
        const SampleId id{0, 3, seed};
        std::vector<float> pixels(static_cast<size_t>(3 * size * size));
        int64_t label = -1;
        void* out[] = {pixels.data(), &label};
        list.read(id, out);
        std::array<float, kCropNumbers> numbers;
        const Philox random(seed, mix(mix(stable_hash("augment"), 3), 0));
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = random.uniform(i);
        const Crop crop = augment ? random_crop(300, 200, options.min_area, numbers)
                                  : center_crop(300, 200, options.resize, size);
        int reduce = 1;
        while (std::min(crop.width, crop.height) >= static_cast<float>(2 * reduce * size))
          reduce *= 2;
        const auto want = reference(bytes, crop, reduce, size, options.norm);
        double worst = 0;
        for (size_t i = 0; i < want.size(); ++i)
          worst = std::max(worst, std::abs(want[i] - static_cast<double>(pixels[i])));
        EXPECT_LT(worst, 2e-3) << "size " << size << " seed " << seed << " augment " << augment
                               << " reduce " << reduce;
      }
    }
  }
}

TEST_F(Lists, EveryPictureGoesToExactlyOneWorker) {
  std::string text;
  for (int i = 0; i < 6; ++i) text += str("p", i, ".jpg ", i, "\n");
  write_file(dir_ / "unique.txt", text);
  for (const int world : {1, 2, 3, 4}) {
    std::map<int64_t, int> seen;
    for (int rank = 0; rank < world; ++rank) {
      Loader loader(std::make_shared<ImageList>(
                        ImageListOptions{.list = dir_ / "unique.txt", .augment = true, .size = 8}),
                    {.batch = 2, .shuffle = true, .rank = rank, .world = world, .threads = 2});
      for (int64_t b = 0; b < loader.batches(); ++b) {
        const Batch batch = loader.next();
        for (const int64_t label : batch.at("label").data<int64_t>()) ++seen[label];
      }
    }
    EXPECT_EQ(seen.size(), 6u);
    int twice = 0;
    for (const auto& [label, times] : seen) {
      EXPECT_LE(times, 2);
      twice += times - 1;
    }
    EXPECT_EQ(twice, world == 4 ? 2 : 0) << "only what fills the last round up comes twice";
  }
}

TEST_F(Lists, DamagedPicturesAreReplacedOnRequest) {
  write_file(dir_ / "p2.jpg", read_file(dir_ / "p2.jpg").substr(0, 900));
  write_file(dir_ / "p3.jpg", "no picture");
  ImageListOptions options{.list = dir_ / "train.txt", .size = 56, .resize = 64};
  std::vector<float> pixels(3 * 56 * 56), next(3 * 56 * 56);
  int64_t label = -1;
  void* out[] = {pixels.data(), &label};
  void* other[] = {next.data(), &label};
  const ImageList strict(options);
  expect_error(kCorrupt, {"train.txt:3", "p2.jpg"}, [&] { strict.read({2, 0, 0}, out); });
  options.damaged = Damaged::kReplace;
  const ImageList list(options);
  list.read({4, 0, 0}, other);
  EXPECT_EQ(list.damaged(), 0);
  list.read({2, 0, 0}, out);
  EXPECT_EQ(list.damaged(), 2) << "p2 and p3";
  EXPECT_EQ(label, 1) << "of p4";
  EXPECT_EQ(pixels, next);
  // A file that is not there is a mistake in the set, not damage.
  write_file(dir_ / "bad.txt", "gone.jpg 0\np0.jpg 0\n");
  options.list = dir_ / "bad.txt";
  const ImageList gone(options);
  expect_error(Error::Kind::kInvalidArgument, {"gone.jpg"}, [&] { gone.read({0, 0, 0}, out); });
  // Nothing but damage is an error too.
  write_file(dir_ / "bad.txt", "p2.jpg 0\np3.jpg 0\n");
  const ImageList hopeless(options);
  expect_error(kCorrupt, {"bad.txt"}, [&] { hopeless.read({0, 0, 0}, out); });
}

TEST_F(Lists, UppercaseExtensionFindsItsFile) {
  std::filesystem::rename(dir_ / "p1.jpg", dir_ / "n1.jpeg");
  write_file(dir_ / "caps.txt", "n1.JPEG 4\n");
  const ImageList list({.list = dir_ / "caps.txt", .size = 8, .resize = 8});
  std::vector<float> pixels(3 * 8 * 8);
  int64_t label = 0;
  void* out[] = {pixels.data(), &label};
  list.read({0, 0, 0}, out);
  EXPECT_EQ(label, 4);
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
