// Attention, the encoder and the decoder layer of Vaswani et al. 2017, on sequences
// [batch, length, hidden].
#pragma once

#include <string>

#include "fleetx/nn/layer.h"

namespace fleetx::nn {

struct AttentionOptions {
  int64_t heads = 1;     // must divide the width of the query
  double dropout = 0.0;  // on the attention weights
  Var mask = {};         // added to the scores [batch, heads, query, key]; may broadcast
  bool causal = false;   // a query sees no later keys; without dropout only
  // Of sequences that stand one after the other in a batch of one, instead of a mask: i64 [n].
  // Those of keys are the same where they are not given. Without dropout only.
  Var lengths = {}, key_lengths = {};
  Init init = nullptr;  // of the weight matrices
  std::string name = "";
};

// Projections are called <name>_query, _key, _value and _output; key and value are sequences of
// equal length, the query may have another.
Var multi_head_attention(const Var& query, const Var& key, const Var& value, AttentionOptions o,
                         Where where = Where::current());

// Its two halves, for keys and values that are computed once and read many times.
struct KeyValue {
  Var key, value;  // [batch, keys, hidden]
};
KeyValue attention_keys(const Var& key, const Var& value, AttentionOptions o,
                        Where where = Where::current());
Var attention_to(const Var& query, const KeyValue& keys, AttentionOptions o,
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
  Var lengths = {};  // instead of a mask, see AttentionOptions
  // With lengths: the rows whose results are read, i64 [m], in the order of the sequences, and how
  // many each has, i64 [n]. Others are computed as keys and values only; the result is
  // [1, m, hidden].
  Var read = {}, read_lengths = {};
  Init init = nullptr;
  std::string name = "";
};

// x + attention(x), then + feed-forward; layer norms <name>_norm_0, _norm_1.
Var encoder_layer(const Var& x, EncoderLayerOptions o, Where where = Where::current());

struct DecoderLayerOptions {
  int64_t heads = 1;
  int64_t intermediate = 0;
  std::string act = "relu";
  double dropout = 0.0;   // on the output of the three parts
  bool pre_norm = false;  // normalize the input of each part instead of its output
  double epsilon = 1e-5;
  Var memory_mask = {};                   // added to the scores of the memory
  Var lengths = {}, memory_lengths = {};  // instead of a mask, see AttentionOptions
  // Keys and values of what came before [batch * length, past, hidden]; then x is one place of
  // batch * length sequences, among them length that share a memory (the beams of a search).
  KeyValue past = {};
  Var past_mask = {};  // added to the scores [batch * length, heads, 1, past + 1]
  Init init = nullptr;
  std::string name = "";
};
struct DecoderLayer {
  Var out;           // as x
  KeyValue present;  // of x, [batch * length, 1, hidden]; only with a past
};

// x + attention to what came before, + attention to the memory, + feed-forward; layer norms
// <name>_norm_0, _1, _2. `memory` is decoder_memory() of what the encoder gives.
DecoderLayer decoder_layer(const Var& x, const KeyValue& memory, DecoderLayerOptions o,
                           Where where = Where::current());
KeyValue decoder_memory(const Var& encoded, const DecoderLayerOptions& o,
                        Where where = Where::current());

}  // namespace fleetx::nn
