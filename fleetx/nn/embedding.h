// Rows of a table, and pooling of ragged sequences of them.
#pragma once

#include <string>

#include "fleetx/nn/layer.h"

namespace fleetx::nn {

struct EmbeddingOptions {
  int64_t rows = 0;             // of the table: ids are in [0, rows)
  int64_t dim = 0;              // of a row
  int64_t padding_idx = -1;     // this id gives zeros and is not trained; -1: none
  bool sparse = false;          // the gradient holds only the rows that were used
  bool is_distributed = false;  // the table is kept by the parameter servers, where there are some
  ParamAttr weight_attr = {};   // Xavier uniform
  std::string name = "";
};

// ids [...] -> [..., dim].
Var embedding(const Var& ids, EmbeddingOptions o, Where where = Where::current());

// One row per sequence: x [total, D] holds all sequences of the batch, one after the other;
// offsets i64 [B + 1] says where each begins. type: sum, mean, sqrt, max, first, last.
Var sequence_pool(const Var& x, const Var& offsets, const std::string& type = "sum",
                  Where where = Where::current());

}  // namespace fleetx::nn
