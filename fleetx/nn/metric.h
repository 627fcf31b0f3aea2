// Metrics: computed in the program, not differentiated.
#pragma once

#include <string>

#include "fleetx/nn/layer.h"

namespace fleetx::nn {

// Share of examples whose label is among the k highest scores: f32 [1].
Var accuracy(const Var& scores, const Var& label, int k = 1, Where where = Where::current());

struct AucOptions {
  int num_thresholds = 4095;
  std::string curve = "ROC";  // or "PR"
  std::string name = "";
};
// Area under the curve over all batches since the start: the histograms are state of the program,
// <name>.stat_pos and <name>.stat_neg. x [N, 1] or [N, 2] (the last column counts), label [N, 1].
Var auc(const Var& x, const Var& label, AucOptions o = {}, Where where = Where::current());

}  // namespace fleetx::nn
