// Wide & Deep (Cheng et al. 2016) for click prediction: a linear model on the dense inputs beside a
// deep one on the dense inputs and the embeddings of the ids.
#pragma once

#include "fleetx/models/network.h"

namespace fleetx::models {

struct WideDeepOptions {
  int64_t rows = 1000001;  // of the table that all slots share
  int64_t dim = 10;
  std::vector<int64_t> hidden = {400, 400, 400};
  bool sparse = true;     // gradients of the table hold only the rows of the batch
  std::string name = "";  // prefix of its layers, see network.h
};

struct WideDeepOutputs {
  Var logits;       // [batch, 1]
  Var probability;  // [batch, 1]
  Var loss;         // [1]
  ir::Names checkpoints;
};

// dense f32 [batch, 13], ids i64 [batch, 26], label f32 [batch, 1], 0 or 1. (Other widths are
// fine.)
WideDeepOutputs wide_deep(const Var& dense, const Var& ids, const Var& label,
                          WideDeepOptions o = {}, Where where = Where::current());

}  // namespace fleetx::models
