#include "fleetx/nn/metric.h"

namespace fleetx::nn {

Var accuracy(const Var& scores, const Var& label, int k, Where where) {
  return call(scores, "accuracy", {{"x", scores}, {"label", label}}, {{"k", k}}, where)["out"];
}

Var auc(const Var& x, const Var& label, AucOptions o, Where where) {
  const Layer layer(x.builder(), o.name, "auc", where);
  layer.check(o.num_thresholds > 0, "num_thresholds must be positive, got ", o.num_thresholds);
  ir::Builder& b = layer.builder();
  const Shape bins = {o.num_thresholds + 1};
  const Var pos = b.state(layer.name() + ".stat_pos", i64, bins);
  const Var neg = b.state(layer.name() + ".stat_neg", i64, bins);
  return b.op("auc", {{"x", x}, {"label", label}, {"stat_pos", pos}, {"stat_neg", neg}},
              {{"num_thresholds", o.num_thresholds}, {"curve", o.curve}},
              {{"stat_pos_out", pos}, {"stat_neg_out", neg}})["out"];
}

}  // namespace fleetx::nn
