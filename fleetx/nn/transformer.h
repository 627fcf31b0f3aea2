// Attention and the encoder layer of Vaswani et al. 2017, on sequences [batch, length, hidden].
#pragma once

#include <string>

#include "fleetx/nn/layer.h"

namespace fleetx::nn {

struct AttentionOptions {
  int64_t heads = 1;     // must divide the width of the query
  double dropout = 0.0;  // on the attention weights
  Var mask = {};         // added to the scores [batch, heads, query, key]; may broadcast
  Init init = nullptr;   // of the weight matrices
  std::string name = "";
};

// Projections are called <name>_query, _key, _value and _output; key and value are sequences of
// equal length, the query may have another.
Var multi_head_attention(const Var& query, const Var& key, const Var& value, AttentionOptions o,
                         Where where = Where::current());

struct EncoderLayerOptions {
  int64_t heads = 1;
  int64_t intermediate = 0;  // width of the feed-forward part
  std::string act = "relu";
  double dropout = 0.0;            // on the output of both parts
  double attention_dropout = 0.0;  // on the attention weights
  bool pre_norm = false;           // normalize the input of each part instead of its output
  double epsilon = 1e-5;
  Var mask = {};
  Init init = nullptr;
  std::string name = "";
};

// x + attention(x), then + feed-forward; layer norms <name>_norm_0, _norm_1.
Var encoder_layer(const Var& x, EncoderLayerOptions o, Where where = Where::current());

}  // namespace fleetx::nn
