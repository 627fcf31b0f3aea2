// A picture for tests of the image path.
#pragma once

#include "fleetx/data/image.h"

namespace fleetx::testing {

// Smooth, so that JPEG keeps it nearly as it is.
inline data::Image picture(int width, int height, int hue = 0) {
  data::Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      uint8_t* p = image.pixel(x, y);
      p[0] = static_cast<uint8_t>(255 * x / width);
      p[1] = static_cast<uint8_t>(255 * y / height);
      p[2] = static_cast<uint8_t>(hue);
    }
  return image;
}

}  // namespace fleetx::testing
