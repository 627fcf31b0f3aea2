// What fuse_bn_relu, fuse_add_relu and fuse_bias_act share: an op that can apply an activation to
// its own output takes over the activation op that follows it.
#pragma once

#include <set>
#include <string_view>

#include "fleetx/passes/graph.h"

namespace fleetx::passes {

struct ActFusion {
  std::string_view op;                      // has the attribute `act`, "" by default
  std::set<std::string, std::less<>> acts;  // activations it can take over
  std::string_view grad = "";  // backward op with `act`; "": the activation's own stays
  bool (*accepts)(const ir::Program&, const ir::Op&) = nullptr;  // a further condition on the op
};

//   y = op(...)              out = op(...) {act="relu"}
//   out = relu(y)
// and, where `grad` is given (it must find out by itself where the activation let pass), for the
// same op:
//   dy = relu_grad(out, dout)
//   dx = op_grad(..., dy)    dx = op_grad(..., dout) {act="relu"}
// An activation whose gradient reads y keeps y alive and is left alone.
void fuse_activation(Graph& g, const ActFusion& fusion);

}  // namespace fleetx::passes
