#include "fleetx/train/history.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cmath>

#include "fleetx/train/plot.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::train {
namespace {

using testing::expect_error;
using testing::TempDir;

History sample() {
  History h;
  h.add({"train", 1, 100, 1.0 / 3, 0.5, 1.5});
  h.add({"test", 1, 100, 2.5e-17, std::nan(""), 1.5});
  return h;
}

TEST(History, CsvReadsBackToTheSameBits) {
  const std::string csv = sample().to_csv();
  EXPECT_EQ(csv,
            "split,epoch,step,loss,accuracy,seconds\n"
            "train,1,100,0.3333333333333333,0.5,1.5\n"
            "test,1,100,2.5e-17,,1.5\n");
  const History back = History::parse_csv(csv, "h.csv");
  EXPECT_EQ(back.to_csv(), csv);
  EXPECT_EQ(back.records()[0].loss, 1.0 / 3);
  EXPECT_TRUE(std::isnan(back.records()[1].accuracy));
  for (const char* bad : {"x\n", "split,epoch,step,loss,accuracy,seconds\ntrain,1,2\n",
                          "split,epoch,step,loss,accuracy,seconds\ntrain,x,2,1,1,1\n",
                          "split,epoch,step,loss,accuracy,seconds\ntrain,1,2,1,1,1,1\n"})
    expect_error(Error::Kind::kCorrupt, {"h.csv:"}, [&] { History::parse_csv(bad, "h.csv"); });
}

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;

  explicit Picture(const std::string& path) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    EXPECT_NE(png_image_begin_read_from_file(&image, path.c_str()), 0) << image.message;
    image.format = PNG_FORMAT_RGB;
    width = static_cast<int>(image.width);
    height = static_cast<int>(image.height);
    rgb.resize(PNG_IMAGE_SIZE(image));
    EXPECT_NE(png_image_finish_read(&image, nullptr, rgb.data(), 0, nullptr), 0);
  }
  // Pixels of about this colour in a rectangle.
  int count(int left, int top, int right, int bottom, int r, int g, int b) const {
    int n = 0;
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x) {
        const uint8_t* p = &rgb[static_cast<size_t>((y * width + x) * 3)];
        n += std::abs(p[0] - r) + std::abs(p[1] - g) + std::abs(p[2] - b) < 40;
      }
    return n;
  }
};

TEST(Plot, LinesAreWhereTheNumbersAre) {
  const TempDir dir;
  // A straight line from the lower left to the upper right.
  Panel panel{.title = "Line", .x_label = "x", .y_label = "y", .series = {{"up", {}}}};
  for (int i = 0; i <= 100; ++i) panel.series[0].points.emplace_back(i, 2 * i);
  panel.series[0].points.emplace_back(50, std::nan(""));
  plot_png(dir / "p.png", {panel}, {.width = 600, .height = 400});
  const Picture p(dir / "p.png");
  EXPECT_EQ(p.width, 600);
  EXPECT_EQ(p.height, 400);
  const auto blue = [&](int l, int t, int r, int b) { return p.count(l, t, r, b, 36, 104, 196); };
  EXPECT_GT(blue(80, 280, 180, 340), 50) << "lower left";
  EXPECT_GT(blue(480, 56, 575, 120), 50) << "upper right";
  EXPECT_EQ(blue(480, 200, 575, 330), 0) << "lower right";
  EXPECT_GT(p.count(70, 20, 200, 50, 45, 50, 60), 30) << "title";
}

TEST(Plot, HistoryGivesTwoPanels) {
  const TempDir dir;
  sample().plot(dir / "h.png");
  EXPECT_EQ(Picture(dir / "h.png").width, 1280);
  History().plot(dir / "empty.png");
  expect_error(Error::Kind::kInvalidArgument, {"/x.png"}, [&] { sample().plot(dir / "no/x.png"); });
  expect_error(Error::Kind::kInvalidArgument, {"no panels"}, [&] { plot_png(dir / "x.png", {}); });
}

TEST(Plot, TicksAreRoundNumbers) {
  EXPECT_EQ(ticks_of(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}));
  EXPECT_EQ(ticks_of(-7, 43, 5), (std::vector<double>{0, 10, 20, 30, 40}));
  EXPECT_EQ(tick_label(0.6000000000000001, 0.2), "0.6");
  EXPECT_EQ(tick_label(0.25, 0.05), "0.25");
  EXPECT_EQ(tick_label(20000, 5000), "20k");
  EXPECT_EQ(tick_label(1500, 500), "1500");
  EXPECT_EQ(tick_label(2e-6, 1e-6), "2e-06");
}

}  // namespace
}  // namespace fleetx::train
