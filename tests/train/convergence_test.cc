// Whole trainings on real and made-up pictures, through everything: data, network, optimizer,
// executor, trainer. Accuracies are far from what chance or a broken gradient would give.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "fleetx/data/fashion_mnist.h"
#include "fleetx/data/flowers.h"
#include "fleetx/data/image_list.h"
#include "fleetx/models/lenet.h"
#include "fleetx/models/resnet.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/optim/schedule.h"
#include "fleetx/train/trainer.h"
#include "tests/support/temp_dir.h"

namespace fleetx::train {
namespace {

// Wall and processor time of a part of a test. Limits are on processor time of two cores: that is
// the wall time on a machine that has nothing else to do, and it does not depend on neighbours.
class Stopwatch {
 public:
  double wall() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double two_cores() const {
    return static_cast<double>(std::clock() - clock_) / CLOCKS_PER_SEC / 2;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::clock_t clock_ = std::clock();
};

TEST(Convergence, LeNetOnFashionMnist) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "the Debian package dataset-fashion-mnist is not installed";
  const Stopwatch watch;
  constexpr int64_t kEpochs = 4;
  data::Loader train(std::make_shared<data::FashionMnist>(),
                     {.batch = 64, .shuffle = true, .drop_last = true});
  data::Loader test(
      std::make_shared<data::FashionMnist>(data::FashionMnistOptions{.split = data::Split::kTest}),
      {.batch = 250});
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var image = b.data("image", f32, {-1, 1, 28, 28}),
                label = b.data("label", i64, {-1, 1});
  const ir::Var logits = models::lenet(image).logits;
  const ir::Var loss = nn::mean(nn::softmax_cross_entropy(logits, label));
  const int64_t steps = kEpochs * train.batches();
  optim::Adam({.lr = optim::polynomial(b, 2e-3, {.steps = steps, .end = 1e-5})}).minimize(loss);
  Trainer trainer(b, loss, nn::accuracy(logits, label),
                  {.epochs = kEpochs, .log_every = 1000, .seed = 1});
  trainer.fit(train, &test);
  const double accuracy = trainer.history().records().back().accuracy;
  std::cout << "accuracy " << accuracy << ", " << watch.wall() << " s, " << watch.two_cores()
            << " s on two free cores\n";
  EXPECT_GE(accuracy, 0.90);
  EXPECT_LT(watch.two_cores(), 180);
}

class Flowers : public ::testing::Test {
 protected:
  static constexpr int kKinds = 6, kSize = 64;

  static void SetUpTestSuite() {
    dir_ = std::make_unique<testing::TempDir>();
    data::generate_flowers(
        {.folder = dir_->path(), .classes = kKinds, .train = 4800, .val = 600, .size = 96});
  }
  static void TearDownTestSuite() { dir_.reset(); }

  // Test accuracy after training the network that `build` makes.
  template <class Build>
  static double train(const Build& build, double rate, int64_t epochs) {
    const data::ImageListOptions training{
        .list = *dir_ / "train.txt", .augment = true, .size = kSize, .min_area = 0.5f};
    const data::ImageListOptions testing{.list = *dir_ / "val.txt", .size = kSize, .resize = 72};
    data::Loader train(std::make_shared<data::ImageList>(training),
                       {.batch = 32, .shuffle = true, .threads = 2});
    data::Loader test(std::make_shared<data::ImageList>(testing), {.batch = 50, .threads = 2});
    ir::Program main, startup;
    ir::Builder b(main, startup);
    const ir::Var image = b.data("image", f32, {-1, 3, kSize, kSize});
    const ir::Var label = b.data("label", i64, {-1, 1});
    const ir::Var logits = build(image);
    const ir::Var loss = nn::mean(nn::softmax_cross_entropy(logits, label));
    const int64_t steps = epochs * train.batches();
    const ir::Var lr =
        optim::warm_up(optim::polynomial(b, rate, {.steps = steps, .end = 0}), steps / 20, 0, rate);
    optim::Momentum({.lr = lr, .mu = 0.9, .l2 = 1e-4}).minimize(loss);
    Trainer trainer(b, loss, nn::accuracy(logits, label),
                    {.epochs = epochs, .log_every = 1000, .seed = 1});
    trainer.fit(train, &test);
    return trainer.history().records().back().accuracy;
  }

  static inline std::unique_ptr<testing::TempDir> dir_;
};

TEST_F(Flowers, ALinearModelDoesNotSolveThem) {
  // Guessing gives 1/6. A low rate, so that it is not the optimizer that fails.
  const auto linear = [](const ir::Var& image) { return nn::fc(image, {.size = kKinds}); };
  EXPECT_LT(train(linear, 1e-4, 4), 0.35);
}

TEST_F(Flowers, ASmallResNetLearnsThem) {
  const Stopwatch watch;
  const auto resnet = [](const ir::Var& image) {
    return models::resnet(image, {.depth = 18, .classes = kKinds, .width = 16}).logits;
  };
  EXPECT_GT(train(resnet, 0.05, 12), 0.75);
  std::cout << watch.wall() << " s, " << watch.two_cores() << " s on two free cores\n";
  EXPECT_LT(watch.two_cores(), 180);
}

}  // namespace
}  // namespace fleetx::train
