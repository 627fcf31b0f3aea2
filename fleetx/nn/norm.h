// Normalization layers.
#pragma once

#include <string>

#include "fleetx/nn/layer.h"

namespace fleetx::nn {

struct BatchNormOptions {
  std::string act = "";
  double momentum = 0.9;  // running = momentum * running + (1 - momentum) * batch
  double epsilon = 1e-5;
  bool is_test = false;
  bool use_global_stats = false;  // normalize with the running statistics also when training
  ParamAttr scale_attr = {};      // 1
  ParamAttr bias_attr = {};       // 0
  std::string mean_name = "";
  std::string variance_name = "";
  std::string name = "";
};

// Over all but dimension 1 of x [N, C] or [N, C, H, W]. Scale .w_0, bias .b_0; the running mean
// .w_1 and variance .w_2 are state.
Var batch_norm(const Var& x, BatchNormOptions o = {}, Where where = Where::current());

struct LayerNormOptions {
  int begin_norm_axis = 1;
  double epsilon = 1e-5;
  bool scale = true;
  bool bias = true;
  std::string act = "";
  ParamAttr scale_attr = {};  // 1
  ParamAttr bias_attr = {};   // 0
  std::string name = "";
};

// Over the dimensions from begin_norm_axis on. Scale .w_0, bias .b_0.
Var layer_norm(const Var& x, LayerNormOptions o = {}, Where where = Where::current());

}  // namespace fleetx::nn
