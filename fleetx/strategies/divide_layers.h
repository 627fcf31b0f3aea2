// Layers that say how ranks may divide them become those of nn/parallel.h, without a change of the
// program that builds them. A weight says it with its attribute kDivideAttr: the axis along which
// it is divided, 1 (columns) or 0 (rows). nn/transformer.cc marks the layers of a transformer:
//
//   before                               after (2 ranks)
//     q = fc(x, wq, bq)                    x@PARTS = group_identity(x)
//     k = fc(x, wk, bk)                    q = fc(x@PARTS, wq, bq)        half of the columns
//     v = fc(x, wv, bv)                    k, v likewise
//     a = attention(q, k, v) {heads=12}    a = attention(q, k, v) {heads=6}
//     y = fc(a, wo, bo)                    y@OWN = fc(a, wo)              half of the rows
//                                          y@SUM = group_sum(y@OWN)
//                                          y = elementwise_add(y@SUM, bo)
//
// What stands between layers by columns and by rows computes with the part of its rank.
#pragma once

#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

// Whether the program has such layers that are whole still.
bool has_divisible_layers(const ir::Program& main);

// Sizes that `ranks` does not divide are kInvalidArgument that names the layer.
void divide_layers(Programs& programs, int ranks);

}  // namespace fleetx::strategies
