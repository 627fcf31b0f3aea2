// A stroke font: letters as polylines, in units of a tenth of a capital's height, y upwards from
// the base line.
#pragma once

#include <vector>

#include "fleetx/train/raster.h"

namespace fleetx::train {

struct Glyph {
  float width = 0;
  std::vector<std::vector<Point>> lines;
};

inline constexpr float kCapital = 10, kLetterGap = 2.6f;

// Printable ASCII; anything else is a box.
const Glyph& glyph_of(char c);

}  // namespace fleetx::train
