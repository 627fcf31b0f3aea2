// The Transformer (Vaswani et al. 2017) from one language to another. Layers are normalized at
// their input, with a norm after the last one; places are sines, so there is no longest sentence;
// the output matrix is the word embedding of the target.
//
// transformer() is what trains. A search for the best translation runs transformer_memory() once
// for its sentences and transformer_step() for each word; see train/translator.h.
#pragma once

#include "fleetx/models/network.h"
#include "fleetx/nn/transformer.h"

namespace fleetx::models {

// The defaults are the base model; the big one is 1024 wide with 16 heads and 4096.
struct TransformerOptions {
  int64_t source_vocabulary = 32000;
  int64_t target_vocabulary = 32000;
  bool shared_words = true;  // both languages have one vocabulary and one embedding
  int64_t hidden = 512;
  int layers = 6;  // of the encoder, and of the decoder
  int64_t heads = 8;
  int64_t intermediate = 2048;
  double dropout = 0.0;  // on embeddings and on the outputs of the parts of layers
  double label_smoothing = 0.1;
  std::string name = "";  // prefix of its layers, see network.h
};

struct TransformerSource {
  Var words;   // i64 [batch, length]
  Var places;  // i64 [batch or 1, length]; those of the first row count for all
  Var mask;    // added to attention scores: [batch, 1, 1, length]
  // i64 [n], instead of the mask: the batch is one row, in which n sentences stand one after the
  // other. A length of 0 only fills up the list.
  Var lengths = {};
};

struct TransformerTargets {
  Var words;         // i64 [batch, length]: begins with <s>
  Var places;        // i64 [batch or 1, length]
  Var next;          // i64 [batch, length, 1]: the words that follow
  Var weights;       // f32 [batch, length, 1]: 0 for padding
  Var lengths = {};  // i64 [n], where the source has lengths
};

struct TransformerTraining {
  Var loss;        // [1]: per word, with smoothed labels
  Var token_loss;  // [1]: without; its exponential is the perplexity
  Var logits;      // [batch, length, target_vocabulary]
  ir::Names checkpoints;
};
TransformerTraining transformer(const TransformerSource& source, const TransformerTargets& targets,
                                TransformerOptions o = {}, Where where = Where::current());

// What the layers of the decoder read of sentences: [batch, length, hidden] each.
std::vector<nn::KeyValue> transformer_memory(const TransformerSource& source,
                                             TransformerOptions o = {},
                                             Where where = Where::current());

// Of `beams` translations of each sentence, the next word.
struct TransformerPast {
  Var words;                         // i64 [batch, beams], beams known: the last words
  Var place;                         // i64 [1, 1]: where they stand
  std::vector<nn::KeyValue> before;  // by layer: [batch * beams, past, hidden]
  Var mask;                          // added to the scores of the past and the last word
  std::vector<nn::KeyValue> memory;  // by layer
  Var memory_mask;                   // [batch, 1, 1, length]
};
struct TransformerStep {
  Var logits;                         // [batch, beams, target_vocabulary]
  std::vector<nn::KeyValue> present;  // by layer: [batch * beams, 1, hidden], to put at the place
};
TransformerStep transformer_step(const TransformerPast& past, TransformerOptions o = {},
                                 Where where = Where::current());

}  // namespace fleetx::models
