// Trains a LeNet on Fashion-MNIST: 60,000 images of clothes, ten kinds. Half-way it saves
// everything, forgets it, loads it again and goes on.
//
//   lenet_fashion_mnist                                  one worker
//   fleetrun --nproc_per_node=2 lenet_fashion_mnist      two, that share every batch
#include <CLI/CLI.hpp>
#include <iostream>

#include "fleetx/data/fashion_mnist.h"
#include "fleetx/fleet/describe_job.h"
#include "fleetx/fleet/fleet.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/optim/schedule.h"
#include "fleetx/train/trainer.h"

using namespace fleetx;

int run(int argc, char** argv) {
  int64_t epochs = 6, batch = 64, limit = 0;
  std::string folder = "lenet-run", data_folder;
  bool resume = false;
  CLI::App app("Trains a LeNet on Fashion-MNIST.");
  app.add_option("--epochs", epochs, "times to go through all images")->capture_default_str();
  app.add_option("--batch", batch, "images per step, of all workers together")
      ->capture_default_str();
  app.add_option("--checkpoint", folder, "folder for checkpoints and curves")
      ->capture_default_str();
  app.add_option("--data", data_folder, "folder of Fashion-MNIST, where it is not Debian's");
  app.add_option("--limit", limit, "use only so many images; 0: all")->capture_default_str();
  app.add_flag("--resume", resume, "go on with an earlier run in the same folder");
  CLI11_PARSE(app, argc, argv);

  fleet::init({.is_collective = true});
  const int rank = fleet::worker_index(), world = fleet::worker_num();
  check_arg(batch % world == 0, "--batch ", batch, " cannot be shared by ", world, " workers");

  using data::Split;
  const auto images = [&](Split split) {
    return std::make_shared<data::FashionMnist>(
        data::FashionMnistOptions{.split = split, .folder = data_folder, .limit = limit});
  };
  data::Loader train(
      images(Split::kTrain),
      {.batch = batch / world, .shuffle = true, .drop_last = true, .rank = rank, .world = world});
  data::Loader test(images(Split::kTest), {.batch = 250, .rank = rank, .world = world});

  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var image = b.data("image", f32, {-1, 1, 28, 28});
  const ir::Var label = b.data("label", i64, {-1, 1});
  ir::Var x = nn::conv2d(image, {.filters = 20, .kernel = 5, .act = "relu"});
  x = nn::pool2d(x, {.kernel = 2, .stride = 2});
  x = nn::conv2d(x, {.filters = 50, .kernel = 5, .act = "relu"});
  x = nn::pool2d(x, {.kernel = 2, .stride = 2});
  x = nn::fc(x, {.size = 500, .act = "relu"});
  const ir::Var logits = nn::fc(nn::dropout(x, {.p = 0.3}), {.size = 10});
  const ir::Var loss = nn::mean(nn::softmax_cross_entropy(logits, label));
  const ir::Var accuracy = nn::accuracy(logits, label);
  const int64_t steps = epochs * train.batches();
  auto optimizer = fleet::distributed_optimizer(
      optim::Adam({.lr = optim::polynomial(b, 2e-3, {.steps = steps, .end = 1e-5})}));
  optimizer.minimize(loss);

  train::TrainerOptions options{
      .epochs = epochs, .checkpoint_dir = folder, .resume = true, .seed = 1};
  if (!resume && fleet::is_first_worker()) train::remove_checkpoints(folder);
  fleet::barrier_worker();
  options.max_steps = steps / 2;
  train::Trainer(b, loss, accuracy, options).fit(train, &test);
  options.max_steps = 0;
  train::Trainer trainer(b, loss, accuracy, options);
  trainer.fit(train, &test);

  const train::Metrics result = trainer.evaluate(test);
  if (!fleet::is_first_worker()) return 0;
  train::save_model(folder + "/model", main, {logits.name()}, trainer.scope());
  trainer.history().plot(folder + "/curves.png");
  std::cout << "test accuracy " << 100 * result.accuracy << " %, on " << result.samples
            << " images it has not seen\ncurves: " << folder << "/curves.png\nmodel:  " << folder
            << "/model (fleetx show " << folder << "/model)\n";
  return 0;
}

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const fleet::JobDescribed& end) {  // fleetrun --plan
    return end.exit_code();
  } catch (const std::exception& e) {
    std::cerr << "lenet_fashion_mnist: " << e.what() << '\n';
    return 1;
  }
}
