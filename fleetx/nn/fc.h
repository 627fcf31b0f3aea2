// Fully connected layer: out = act(x * w + b). Dimensions of x before num_flatten_dims stay, the
// others are flattened: x [B, 3, 4] and size 10 give w [12, 10] and out [B, 10].
#pragma once

#include <string>

#include "fleetx/nn/layer.h"

namespace fleetx::nn {

struct FcOptions {
  int64_t size = 0;          // outputs
  int num_flatten_dims = 1;  // -1: all but the last
  std::string act = "";
  bool bias = true;
  ParamAttr weight_attr = {};  // Xavier uniform
  ParamAttr bias_attr = {};    // 0
  std::string name = "";
};

Var fc(const Var& x, FcOptions o, Where where = Where::current());

}  // namespace fleetx::nn
