// What the model functions give back.
#pragma once

#include "fleetx/nn/call.h"

namespace fleetx::models {

using ir::Var;
using nn::Where;

struct Network {
  Var logits;
  // Outputs of the blocks: what a recompute strategy keeps.
  ir::Names checkpoints;
};

}  // namespace fleetx::models
