// Layers whose parameters are divided between the ranks of a group ("mp"; tensor parallel). Each
// rank has a part, computes with it, and together they compute what one rank computes with the
// whole layer. All ranks of the group are fed the same.
//
//   by columns (axis 1)   h = fc(group_identity(x), w[:, part])    h is a part of the columns;
//                         out = group_concat(h)                    with gather_out all of them
//   by rows    (axis 0)   out = group_sum(fc(x's part, w[part, :])) + bias
//   embedding             out = group_sum(embedding_part(ids, w[part, :]))
//
// By columns without gather_out, an activation, then by rows: one sum of the group per step in each
// direction. Names and first values are those of the whole layer (fc, embedding), so that files
// that one rank has saved can be loaded by several, and the reverse. With partitions = 1 they are
// those layers.
#pragma once

#include <string>

#include "fleetx/nn/layer.h"

namespace fleetx::nn {

struct ParallelLinearOptions {
  int64_t rows = 0, columns = 0;  // of the whole weight: inputs and outputs
  int axis = 0;                   // of the weight, along which it is divided
  int64_t partitions = 1;         // as many as the mesh has ranks along mp
  bool gather_out = true;         // by columns: whether all ranks get all columns
  bool bias = true;
  ParamAttr weight_attr = {};  // Xavier uniform
  ParamAttr bias_attr = {};    // 0
  std::string name = "";
};

// x [..., rows] -> [..., columns]; by rows x may also be the part of this rank, [..., rows /
// partitions], as a layer by columns makes it.
Var parallel_linear(const Var& x, ParallelLinearOptions o, Where where = Where::current());

struct ParallelEmbeddingOptions {
  int64_t rows = 0, dim = 0;  // of the whole table
  int64_t partitions = 1;
  ParamAttr weight_attr = {};  // Xavier uniform
  std::string name = "";
};

// ids [...] -> [..., dim].
Var parallel_embedding(const Var& ids, ParallelEmbeddingOptions o, Where where = Where::current());

struct ParallelCrossEntropyOptions {
  int64_t partitions = 1;
  int64_t ignore_index = -100;  // labels of this value cost nothing
};

// softmax_cross_entropy of logits whose classes are divided, as a layer by columns without
// gather_out makes them: [..., classes / partitions]; label i64 [..., 1] of all classes. The loss
// is the same on all ranks.
Var parallel_softmax_cross_entropy(const Var& logits, const Var& label,
                                   ParallelCrossEntropyOptions o, Where where = Where::current());

}  // namespace fleetx::nn
