#include "fleetx/nn/activation.h"

#include <algorithm>

#include "fleetx/base/names.h"

namespace fleetx::nn {
Var relu(const Var& x, Where where) { return unary("relu", x, where); }
Var relu6(const Var& x, Where where) { return unary("relu6", x, where); }
Var leaky_relu(const Var& x, double alpha, Where where) {
  return unary("leaky_relu", x, where, {{"alpha", alpha}});
}
Var elu(const Var& x, double alpha, Where where) {
  return unary("elu", x, where, {{"alpha", alpha}});
}
Var tanh(const Var& x, Where where) { return unary("tanh", x, where); }
Var sigmoid(const Var& x, Where where) { return unary("sigmoid", x, where); }
Var swish(const Var& x, Where where) { return unary("swish", x, where); }
Var softplus(const Var& x, Where where) { return unary("softplus", x, where); }
Var hard_sigmoid(const Var& x, Where where) { return unary("hard_sigmoid", x, where); }
Var hard_swish(const Var& x, Where where) { return unary("hard_swish", x, where); }
Var gelu(const Var& x, GeluOptions o, Where where) {
  return unary("gelu", x, where, {{"approximate", o.approximate}});
}
Var softmax(const Var& x, int axis, Where where) {
  return unary("softmax", x, where, {{"axis", axis}});
}
Var log_softmax(const Var& x, int axis, Where where) {
  return unary("log_softmax", x, where, {{"axis", axis}});
}

Var activation(const Var& x, const std::string& name, Where where) {
  static const std::vector<std::string> known = {
      "relu",  "relu6",    "leaky_relu",   "elu",        "gelu",    "tanh",       "sigmoid",
      "swish", "softplus", "hard_sigmoid", "hard_swish", "softmax", "log_softmax"};
  if (name.empty()) return x;
  check_arg(std::ranges::count(known, name) > 0, user_line(x.builder(), where), ": no activation '",
            name, "'; known: ", join(known, ", "));
  return unary(name, x, where);
}

}  // namespace fleetx::nn
