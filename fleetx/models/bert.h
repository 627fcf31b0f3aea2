// BERT (Devlin et al. 2018): a post-norm transformer encoder with erf gelu, and the two heads that
// train it: words hidden at some positions, and whether the second sentence follows the first.
#pragma once

#include "fleetx/models/network.h"

namespace fleetx::models {

// The defaults are BERT-base.
struct BertOptions {
  int64_t vocabulary = 30522;
  int64_t hidden = 768;
  int layers = 12;
  int64_t heads = 12;
  int64_t intermediate = 3072;
  int64_t max_positions = 512;
  int64_t sentence_kinds = 2;
  double dropout = 0.0;  // on hidden states and attention weights
  double init_std = 0.02;
  bool sparse_words = false;  // the gradient of the word embedding holds only the rows used
  std::string name = "";      // prefix of its layers, see network.h
};

struct BertInputs {
  Var words;      // i64 [batch, length]; the length must be known, or places be given
  Var sentences;  // i64 [batch, length]: 0 for the first sentence, 1 for the second
  Var mask = {};  // added to the attention scores, may broadcast: [batch, 1, 1, length]; optional
  // i64 [batch, length]: where the words stand. Batches then may have any length; without, places
  // are 0, 1, ... and their rows are cut out of the table, which is cheaper.
  Var places = {};
  // i64 [n]: the batch is one row, in which n sequences stand one after the other; instead of a
  // mask, with places. Attention weights have no dropout then. A length of 0 only fills up the
  // list.
  Var lengths = {};
  // With lengths: the places i64 [m] whose results are read, in the order of the sequences, and how
  // many of them each sequence has, i64 [n]. The last layer computes no others.
  Var read = {}, read_lengths = {};
  // With lengths: the first words of the sequences, i64 [n], counted among `read`.
  Var first = {};
};

struct BertEncoder {
  Var sequence;  // [batch, length, hidden]; packed: [1, m, hidden]
  Var pooled;    // [batch, hidden]: of the first word, through a tanh layer; packed: [n, hidden]
  ir::Names checkpoints;
};
BertEncoder bert(const BertInputs& in, BertOptions o = {}, Where where = Where::current());

struct BertTargets {
  // i64 [n]: places of the hidden words, counted over the flattened batch; packed: among `read`
  Var positions;
  Var words;                 // i64 [n, 1]: the hidden words
  Var follows;               // i64 [batch, 1]: does the second sentence follow? Packed: [n, 1]
  Var weights = {};          // f32 [n, 1]: 0 for places that only fill up the list; optional
  Var follows_weights = {};  // f32, as follows; optional
};

struct BertPretraining {
  Var loss;  // [1]: the sum of the two below
  Var word_loss, sentence_loss;
  Var word_logits;      // [n, vocabulary]; the matrix is the word embedding
  Var sentence_logits;  // [batch, 2]
  ir::Names checkpoints;
};
BertPretraining bert_pretraining(const BertInputs& in, const BertTargets& targets,
                                 BertOptions o = {}, Where where = Where::current());

}  // namespace fleetx::models
