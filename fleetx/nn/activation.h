// Activations: out has the shape of x.
#pragma once

#include <string>

#include "fleetx/nn/call.h"

namespace fleetx::nn {

Var relu(const Var& x, Where where = Where::current());
Var relu6(const Var& x, Where where = Where::current());
Var leaky_relu(const Var& x, double alpha = 0.02, Where where = Where::current());
Var elu(const Var& x, double alpha = 1.0, Where where = Where::current());
Var tanh(const Var& x, Where where = Where::current());
Var sigmoid(const Var& x, Where where = Where::current());
Var swish(const Var& x, Where where = Where::current());
Var softplus(const Var& x, Where where = Where::current());
Var hard_sigmoid(const Var& x, Where where = Where::current());
Var hard_swish(const Var& x, Where where = Where::current());

struct GeluOptions {
  bool approximate = false;  // the tanh formula instead of erf
};
Var gelu(const Var& x, GeluOptions o = {}, Where where = Where::current());

Var softmax(const Var& x, int axis = -1, Where where = Where::current());
Var log_softmax(const Var& x, int axis = -1, Where where = Where::current());

// The one of that name; "" gives x itself. Used by the `act` option of layers.
Var activation(const Var& x, const std::string& name, Where where = Where::current());

}  // namespace fleetx::nn
