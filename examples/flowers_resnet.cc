// Trains a small ResNet on made-up pictures of flowers: JPEG files that background threads read,
// decode, crop and mirror. With --model linear it shows that the task is not as easy as it looks.
#include <CLI/CLI.hpp>
#include <iostream>

#include "fleetx/data/flowers.h"
#include "fleetx/data/image_list.h"
#include "fleetx/models/resnet.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/optim/schedule.h"
#include "fleetx/train/trainer.h"

using namespace fleetx;

int run(int argc, char** argv) {
  data::FlowersOptions flowers{.classes = 8, .train = 4000, .val = 800, .size = 96};
  int64_t epochs = 10, batch = 32;
  int size = 64;
  std::string model = "resnet", curves = "flowers.png", folder;
  CLI::App app("Trains a small ResNet on made-up pictures of flowers.");
  app.add_option("--data", folder, "folder with train.txt and val.txt; default: made and cached");
  app.add_option("--classes", flowers.classes, "kinds of flowers")->capture_default_str();
  app.add_option("--train", flowers.train, "pictures to train on")->capture_default_str();
  app.add_option("--val", flowers.val, "pictures to test with")->capture_default_str();
  app.add_option("--pixels", flowers.size, "width of the pictures")->capture_default_str();
  app.add_option("--size", size, "width of what the network sees")->capture_default_str();
  app.add_option("--epochs", epochs, "times to go through all pictures")->capture_default_str();
  app.add_option("--batch", batch, "pictures per step")->capture_default_str();
  app.add_option("--model", model, "resnet or linear")
      ->capture_default_str()
      ->check(CLI::IsMember({"resnet", "linear"}));
  app.add_option("--curves", curves, "file for the curves")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  if (folder.empty())
    folder = data::cached_flowers(flowers, [](int64_t done, int64_t total) {
      std::cerr << "\rmaking pictures: " << done << "/" << total << (done == total ? "\n" : "");
    });
  const auto list = std::make_shared<data::ImageList>(data::ImageListOptions{
      .list = folder + "/train.txt", .augment = true, .size = size, .min_area = 0.5f});
  const auto val = std::make_shared<data::ImageList>(
      data::ImageListOptions{.list = folder + "/val.txt", .size = size, .resize = size * 9 / 8});
  data::Loader train(list, {.batch = batch, .shuffle = true, .drop_last = true, .threads = 2});
  data::Loader test(val, {.batch = 50, .threads = 2});

  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var image = b.data("image", f32, {-1, 3, size, size});
  const ir::Var label = b.data("label", i64, {-1, 1});
  const ir::Var logits =
      model == "linear"
          ? nn::fc(image, {.size = list->classes()})
          : models::resnet(image, {.depth = 18, .classes = list->classes(), .width = 16}).logits;
  const ir::Var loss = nn::mean(nn::softmax_cross_entropy(logits, label));
  const ir::Var accuracy = nn::accuracy(logits, label);
  const int64_t steps = epochs * train.batches();
  const double rate = model == "linear" ? 1e-3 : 0.05;
  const ir::Var lr =
      optim::warm_up(optim::polynomial(b, rate, {.steps = steps, .end = 0}), steps / 20, 0, rate);
  optim::Momentum({.lr = lr, .mu = 0.9, .l2 = 1e-4}).minimize(loss);

  train::Trainer trainer(b, loss, accuracy, {.epochs = epochs, .seed = 1});
  trainer.fit(train, &test);
  trainer.history().plot(curves);
  const train::Metrics result = trainer.evaluate(test);
  std::cout << model << ": " << 100 * result.accuracy << " % of " << result.samples
            << " pictures it has not seen (guessing: "
            << 100.0 / static_cast<double>(list->classes()) << " %)\ncurves: " << curves << "\n";
  return 0;
}

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "flowers_resnet: " << e.what() << '\n';
    return 1;
  }
}
