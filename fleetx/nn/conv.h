// Convolution layers on images [N, C, H, W].
#pragma once

#include <string>

#include "fleetx/nn/layer.h"
#include "fleetx/nn/window.h"

namespace fleetx::nn {

struct Conv2dOptions {
  int64_t filters = 0;  // output channels
  Size2 kernel = 1;
  Size2 stride = 1;
  Padding padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;  // as many as channels: depthwise
  std::string act = "";
  bool bias = true;
  ParamAttr weight_attr = {};  // normal, variance 2 / fan_in
  ParamAttr bias_attr = {};    // 0
  std::string name = "";
};

// w [filters, C / groups, kh, kw].
Var conv2d(const Var& x, Conv2dOptions o, Where where = Where::current());

struct Conv2dTransposeOptions {
  int64_t filters = 0;
  Size2 kernel = 1;
  Size2 stride = 1;
  Padding padding = 0;  // "SAME" is not defined here
  Size2 output_padding = 0;
  Size2 dilation = 1;
  int64_t groups = 1;
  std::string act = "";
  bool bias = true;
  ParamAttr weight_attr = {};  // Xavier uniform
  ParamAttr bias_attr = {};
  std::string name = "";
};

// w [C, filters / groups, kh, kw].
Var conv2d_transpose(const Var& x, Conv2dTransposeOptions o, Where where = Where::current());

}  // namespace fleetx::nn
