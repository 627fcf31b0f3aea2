#include "fleetx/models/mlp.h"

#include "fleetx/nn/fc.h"

namespace fleetx::models {

Network mlp(const Var& x, MlpOptions o, Where where) {
  const auto at = x.builder().at(ir::Loc::of(where));
  Network net;
  Var y = x;
  for (const int64_t size : o.hidden) {
    y = nn::fc(y, {.size = size, .act = o.act});
    net.checkpoints.push_back(y.name());
  }
  net.logits = nn::fc(y, {.size = o.classes});
  return net;
}

}  // namespace fleetx::models
