#include "fleetx/models/wide_deep.h"

#include <cmath>

#include "fleetx/nn/nn.h"

namespace fleetx::models {

WideDeepOutputs wide_deep(const Var& dense, const Var& ids, const Var& label, WideDeepOptions o,
                          Where where) {
  ir::Builder& b = dense.builder();
  const auto at = b.at(ir::Loc::of(where));
  check_arg(ids.shape().rank() == 2 && ids.shape()[1] > 0, b.loc(),
            ": wide_deep: ids must be [batch,slots], got '", ids.name(), "' of ", ids.type());
  const LayerNames named(b, o.name, "wide_deep", "embedding");
  WideDeepOutputs out;
  const Var rows = nn::embedding(ids, {.rows = o.rows,
                                       .dim = o.dim,
                                       .sparse = o.sparse,
                                       .weight_attr = {.init = nn::init::uniform(-0.01, 0.01)},
                                       .name = named("embedding")});
  Var deep = nn::concat({nn::reshape(rows, {0, ids.shape()[1] * o.dim}), dense}, 1);
  for (size_t i = 0; i < o.hidden.size(); ++i) {
    const double std = 1.0 / std::sqrt(static_cast<double>(deep.shape()[1]));
    deep = nn::fc(deep, {.size = o.hidden[i],
                         .act = "relu",
                         .weight_attr = {.init = nn::init::normal(0.0, std)},
                         .name = named(str("deep_", i))});
    out.checkpoints.push_back(deep.name());
  }
  out.logits = nn::fc(deep, {.size = 1, .name = named("deep_out")}) +
               nn::fc(dense, {.size = 1, .name = named("wide")});
  out.probability = nn::sigmoid(out.logits);
  out.loss = nn::mean(nn::sigmoid_cross_entropy(out.logits, label));
  return out;
}

}  // namespace fleetx::models
