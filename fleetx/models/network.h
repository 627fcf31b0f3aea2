// What the model functions share: what they give back, and how they name their layers.
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

// Names follow the rule of nn/layer.h: a model that is not given a name has parameters of its own,
// using a name twice shares them. The first model of a kind has plain names (conv1, fc), the next
// ones without a name resnet_1.conv1, resnet_2.conv1, ..., one named teacher has teacher.conv1.
class LayerNames {
 public:
  // `first` is a layer with weights: if the program has it already, this is not the first model.
  LayerNames(ir::Builder& b, const std::string& name, const std::string& kind,
             const std::string& first);

  std::string operator()(const std::string& layer) const { return prefix_ + layer; }

 private:
  std::string prefix_;
};

}  // namespace fleetx::models
