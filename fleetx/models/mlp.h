// Fully connected layers with relu between them. x [batch, ...] is flattened.
#pragma once

#include "fleetx/models/network.h"

namespace fleetx::models {

struct MlpOptions {
  std::vector<int64_t> hidden = {512, 512};
  int64_t classes = 10;
  std::string act = "relu";
};

Network mlp(const Var& x, MlpOptions o = {}, Where where = Where::current());

}  // namespace fleetx::models
