#include "fleetx/nn/embedding.h"

namespace fleetx::nn {

Var embedding(const Var& ids, EmbeddingOptions o, Where where) {
  const Layer layer(ids.builder(), o.name, "embedding", where);
  layer.check(o.rows > 0 && o.dim > 0, "rows and dim must be positive, got ", o.rows, " and ",
              o.dim);
  o.weight_attr.is_distributed = o.weight_attr.is_distributed || o.is_distributed;
  const Var w = layer.parameter("w_0", {o.rows, o.dim}, o.weight_attr, init::xavier_uniform());
  return layer.builder().op("embedding", {{"ids", ids}, {"w", w}},
                            {{"padding_idx", o.padding_idx}, {"sparse", o.sparse}});
}

Var sequence_pool(const Var& x, const Var& offsets, const std::string& type, Where where) {
  return call(x, "sequence_pool", {{"x", x}, {"offsets", offsets}}, {{"type", type}}, where)["out"];
}

}  // namespace fleetx::nn
