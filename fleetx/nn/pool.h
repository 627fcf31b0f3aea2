// Pooling over windows of images [N, C, H, W].
#pragma once

#include <string>

#include "fleetx/nn/call.h"
#include "fleetx/nn/window.h"

namespace fleetx::nn {

struct Pool2dOptions {
  Size2 kernel = 2;
  Size2 stride = 2;
  Padding padding = 0;
  std::string type = "max";  // or "avg"
  bool exclusive = true;     // avg: padding does not count
  bool ceil_mode = false;
  bool global = false;  // one window over the whole image
};
Var pool2d(const Var& x, Pool2dOptions o, Where where = Where::current());

struct AdaptivePool2dOptions {
  Size2 size = 1;  // of the output
  std::string type = "avg";
};
Var adaptive_pool2d(const Var& x, AdaptivePool2dOptions o, Where where = Where::current());

}  // namespace fleetx::nn
