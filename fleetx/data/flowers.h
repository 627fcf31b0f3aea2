// A synthetic data set of flower pictures to try and test the image pipeline. The kind of a flower
// is its form: number, width and tip of the petals, one ring of them or two, size of the centre.
// Everything else varies with the same distribution for all kinds: position, scale, rotation, tilt,
// colours, background, leaves, clutter, light, noise. So a linear model on pixels or mean colours
// cannot separate the kinds; a small convolutional network can.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fleetx/data/image.h"

namespace fleetx::data {

inline constexpr int kMaxFlowerKinds = 144;

struct FlowersOptions {
  std::string folder = {};
  int classes = 8;  // up to kMaxFlowerKinds
  int64_t train = 1600;
  int64_t val = 400;
  int size = 256;  // of the square pictures
  uint64_t seed = 0;
  int quality = 90;  // of the JPEG files
};

// Writes train/*.jpg, val/*.jpg, and then the lists train.txt and val.txt; an interrupted run
// leaves no list. All kinds are equally frequent. `progress(done, total)` is called
// from time to time, from one thread at a time.
void generate_flowers(const FlowersOptions& options,
                      const std::function<void(int64_t, int64_t)>& progress = {});

// Such a set in the user's cache folder (XDG_CACHE_HOME, ~/.cache); created if it does not exist.
// `options.folder` must be empty. Returns the folder.
std::string cached_flowers(FlowersOptions options,
                           const std::function<void(int64_t, int64_t)>& progress = {});

// Picture `number` of one kind; a pure function of its arguments.
Image draw_flower(int kind, uint64_t seed, uint64_t number, int size);
std::string describe_flower(int kind);  // "5 broad round petals in one ring, small centre"

}  // namespace fleetx::data
