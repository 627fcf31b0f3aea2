#include "fleetx/data/fashion_mnist.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "fleetx/data/loader.h"
#include "tests/support/expect_error.h"

namespace fleetx::data {
namespace {

TEST(FashionMnist, HasTheKnownImages) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "the Debian package dataset-fashion-mnist is not installed";
  const auto train = std::make_shared<FashionMnist>();
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(FashionMnist({.split = Split::kTest}).size(), 10000);
  EXPECT_EQ(FashionMnist({.split = Split::kTest, .limit = 64}).size(), 64);

  Loader loader(train, {.batch = 6000, .threads = 2});
  std::vector<int> count(10);
  double sum = 0, squares = 0;
  for (int64_t b = 0; b < loader.batches(); ++b) {
    const Batch batch = loader.next();
    for (const int64_t label : batch.at("label").data<int64_t>())
      ++count[static_cast<size_t>(label)];
    for (const float x : batch.at("image").data<float>()) {
      sum += x;
      squares += double{x} * x;
    }
    if (b == 0) {
      EXPECT_EQ(batch.at("image").shape(), (Shape{6000, 1, 28, 28}));
      EXPECT_EQ(kFashionClasses[static_cast<size_t>(batch.at("label").data<int64_t>()[0])], "boot");
    }
  }
  EXPECT_EQ(count, std::vector<int>(10, 6000));
  const double n = 60000.0 * 784;
  EXPECT_NEAR(sum / n, 0.0, 1e-3);
  EXPECT_NEAR(std::sqrt(squares / n), 1.0, 1e-3);
}

TEST(FashionMnist, AMissingFileNamesPathAndPackage) {
  testing::expect_error(Error::Kind::kInvalidArgument,
                        {"/nowhere/t10k-images-idx3-ubyte", "dataset-fashion-mnist", "FLEETX_DATA"},
                        [] { FashionMnist({.split = Split::kTest, .folder = "/nowhere"}); });
  setenv("FLEETX_DATA", "/elsewhere", 1);
  testing::expect_error(Error::Kind::kInvalidArgument, {"/elsewhere/train-images"},
                        [] { FashionMnist(); });
  unsetenv("FLEETX_DATA");
}

}  // namespace
}  // namespace fleetx::data
