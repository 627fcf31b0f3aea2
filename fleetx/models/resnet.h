// Residual networks (He et al. 2015) in their version 1.5: a bottleneck block strides in its 3x3
// convolution, not in the 1x1 before it.
#pragma once

#include "fleetx/models/network.h"

namespace fleetx::models {

struct ResNetOptions {
  int depth = 50;  // 18, 34, 50, 101
  int64_t classes = 1000;
  int64_t width = 64;         // channels of the first stage; each following one doubles them
  bool small_images = false;  // 3x3 stem without stride or pooling, for images of 32x32
  std::string name = "";      // prefix of its layers, see network.h
};

// image [batch, 3, 224, 224], or another size.
Network resnet(const Var& image, ResNetOptions o = {}, Where where = Where::current());

}  // namespace fleetx::models
