// VGG16 (Simonyan and Zisserman 2014): thirteen 3x3 convolutions and three fully connected layers.
#pragma once

#include "fleetx/models/network.h"

namespace fleetx::models {

struct Vgg16Options {
  int64_t classes = 1000;
  double dropout = 0.5;   // after the first two fully connected layers
  std::string name = "";  // prefix of its layers, see network.h
};

// image [batch, 3, 224, 224], or any size of at least 32.
Network vgg16(const Var& image, Vgg16Options o = {}, Where where = Where::current());

}  // namespace fleetx::models
