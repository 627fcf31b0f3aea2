// fleetx make-flowers: a set of pictures for trying out the image path.
#include <unistd.h>

#include <iostream>

#include "fleetx/data/flowers.h"
#include "tools/commands.h"

namespace fleetx::tools {
namespace {

void make_flowers(const data::FlowersOptions& o) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  data::generate_flowers(o, [&](int64_t done, int64_t total) {
    if (terminal) std::cerr << "\r" << done << " of " << total << " pictures" << std::flush;
  });
  if (terminal) std::cerr << "\n";
  std::cout << o.folder << ": " << o.train << " pictures in train.txt, " << o.val << " in val.txt, "
            << o.classes << " kinds\n";
  for (int kind = 0; kind < o.classes; ++kind)
    std::cout << "  " << kind << "  " << data::describe_flower(kind) << "\n";
}

}  // namespace

void add_make_flowers(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("make-flowers", "Draw a set of flower pictures (JPEG) to train on");
  auto o = std::make_shared<data::FlowersOptions>();
  const CLI::Range count(0, 10'000'000);
  command->add_option("DIR", o->folder, "folder to write to")->required();
  command->add_option("--classes", o->classes, "kinds of flowers")
      ->check(CLI::Range(1, data::kMaxFlowerKinds))
      ->capture_default_str();
  command->add_option("--train", o->train, "pictures to train on")
      ->check(count)
      ->capture_default_str();
  command->add_option("--val", o->val, "pictures to test on")->check(count)->capture_default_str();
  command->add_option("--size", o->size, "height and width")
      ->check(CLI::Range(16, 4096))
      ->capture_default_str();
  command->add_option("--seed", o->seed, "another seed gives other pictures")
      ->capture_default_str();
  command->add_option("--quality", o->quality, "of the JPEG files")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->footer(
      "The kind of a flower is its form; place, scale, colours, background and noise vary freely, "
      "so\n"
      "a linear model cannot tell the kinds apart. Writes train/*.jpg, val/*.jpg and the lists\n"
      "train.txt and val.txt (lines of `path label`).\n\n"
      "Examples:\n"
      "  fleetx make-flowers flowers\n"
      "  fleetx make-flowers flowers --classes 102 --train 6000 --val 1000 --size 320\n");
  command->callback([o] { make_flowers(*o); });
}

}  // namespace fleetx::tools
