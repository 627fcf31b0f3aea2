// Two convolutions and two fully connected layers, after LeCun et al. 1998 (with relu and max
// pooling), for small images such as [batch, 1, 28, 28].
#pragma once

#include "fleetx/models/network.h"

namespace fleetx::models {

struct LeNetOptions {
  int64_t classes = 10;
  int64_t filters_1 = 20;
  int64_t filters_2 = 50;
  int64_t hidden = 500;
};

Network lenet(const Var& image, LeNetOptions o = {}, Where where = Where::current());

}  // namespace fleetx::models
