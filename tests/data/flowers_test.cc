#include "fleetx/data/flowers.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "fleetx/base/file.h"
#include "fleetx/data/image_list.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using testing::expect_error;
using testing::TempDir;

TEST(Flowers, APictureIsAFunctionOfItsNumbers) {
  const Image a = draw_flower(3, 1, 7, 64);
  EXPECT_EQ(a.rgb, draw_flower(3, 1, 7, 64).rgb);
  EXPECT_NE(a.rgb, draw_flower(3, 1, 8, 64).rgb);
  EXPECT_NE(a.rgb, draw_flower(3, 2, 7, 64).rgb);
  EXPECT_NE(a.rgb, draw_flower(4, 1, 7, 64).rgb);
}

TEST(Flowers, EveryKindHasAFormOfItsOwn) {
  std::set<std::string> forms;
  for (int kind = 0; kind < kMaxFlowerKinds; ++kind) forms.insert(describe_flower(kind));
  EXPECT_EQ(forms.size(), static_cast<size_t>(kMaxFlowerKinds));
  EXPECT_EQ(describe_flower(0), "5 broad round petals in one ring, small centre");
}

TEST(Flowers, AFolderIsAnImageList) {
  const TempDir dir;
  int64_t last = 0;
  const FlowersOptions options{
      .folder = dir / "set", .classes = 3, .train = 20, .val = 7, .size = 48};
  generate_flowers(options, [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 27);
    last = done;
  });
  EXPECT_EQ(last, 27);
  EXPECT_TRUE(
      read_file(dir / "set/train.txt").starts_with("train/000000.jpg 0\ntrain/000001.jpg 1\n"));
  const ImageList train({.list = dir / "set/train.txt", .augment = true, .size = 32});
  const ImageList val({.list = dir / "set/val.txt", .size = 32, .resize = 36});
  EXPECT_EQ(train.size(), 20);
  EXPECT_EQ(val.size(), 7);
  EXPECT_EQ(train.classes(), 3);
  std::vector<float> pixels(3 * 32 * 32);
  int64_t label = -1;
  void* out[] = {pixels.data(), &label};
  val.read({6, 0, 0}, out);
  EXPECT_EQ(label, 0);
  const std::string first = read_file(dir / "set/train/000004.jpg");
  EXPECT_NE(first, read_file(dir / "set/val/000004.jpg")) << "validation pictures are others";
  generate_flowers(options);
  EXPECT_EQ(first, read_file(dir / "set/train/000004.jpg")) << "the same again";
}

TEST(Flowers, ASetIsMadeOnceAndCached) {
  const TempDir dir;
  setenv("XDG_CACHE_HOME", dir.path().c_str(), 1);
  const FlowersOptions options{.classes = 2, .train = 4, .val = 2, .size = 32};
  int calls = 0;
  const auto count = [&](int64_t, int64_t) { ++calls; };
  const std::string folder = cached_flowers(options, count);
  EXPECT_TRUE(folder.starts_with(dir.path()));
  EXPECT_EQ(cached_flowers(options, count), folder);
  EXPECT_EQ(calls, 1);
  EXPECT_NE(cached_flowers({.classes = 2, .train = 4, .val = 2, .size = 32, .seed = 9}), folder);
  unsetenv("XDG_CACHE_HOME");
}

TEST(Flowers, MeanColoursDoNotTellTheKind) {
  constexpr int kKinds = 8, kEach = 60;
  const auto mean = [](const Image& image) {
    std::array<double, 3> sum{};
    for (size_t i = 0; i < image.rgb.size(); ++i)
      sum[i % 3] += image.rgb[i] / (image.rgb.size() / 3.0);
    return sum;
  };
  std::array<std::array<double, 3>, kKinds> centre{};
  for (int k = 0; k < kKinds; ++k)
    for (int i = 0; i < kEach; ++i) {
      const auto m = mean(draw_flower(k, 5, static_cast<uint64_t>(i * kKinds + k), 48));
      for (size_t c = 0; c < 3; ++c) centre[static_cast<size_t>(k)][c] += m[c] / kEach;
    }
  int right = 0;
  for (int k = 0; k < kKinds; ++k)
    for (int i = 0; i < kEach; ++i) {
      const auto m = mean(draw_flower(k, 6, static_cast<uint64_t>(i * kKinds + k), 48));
      int nearest = 0;
      double best = 1e9;
      for (int j = 0; j < kKinds; ++j) {
        double d = 0;
        for (size_t c = 0; c < 3; ++c) d += std::pow(m[c] - centre[static_cast<size_t>(j)][c], 2);
        if (d < best) best = d, nearest = j;
      }
      right += nearest == k;
    }
  EXPECT_LT(static_cast<double>(right) / (kKinds * kEach), 0.2) << "chance is 0.125";
}

TEST(Flowers, MistakesAreNamed) {
  constexpr auto kArgument = Error::Kind::kInvalidArgument;
  const TempDir dir;
  expect_error(kArgument, {"classes is 1", "144"},
               [&] { generate_flowers({.folder = dir.path(), .classes = 1}); });
  expect_error(kArgument, {"got 0"}, [&] { generate_flowers({.folder = dir.path(), .train = 0}); });
  expect_error(kArgument, {"size is 5"},
               [&] { generate_flowers({.folder = dir.path(), .size = 5}); });
  EXPECT_FALSE(std::filesystem::exists(dir / "train.txt"));
  write_file(dir / "file", "");
  expect_error(kArgument, {"/file/set"}, [&] { generate_flowers({.folder = dir / "file/set"}); });
}

}  // namespace
}  // namespace fleetx::data
