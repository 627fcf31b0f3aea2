#include "fleetx/nn/fc.h"

#include "fleetx/nn/activation.h"

namespace fleetx::nn {

Var fc(const Var& x, FcOptions o, Where where) {
  const Layer layer(x.builder(), o.name, "fc", where);
  const int rank = x.shape().rank();
  const int kept = normalize_axis(o.num_flatten_dims, rank);
  layer.check(o.size > 0, "size must be positive, got ", o.size);
  layer.check(kept > 0 && kept < rank, "num_flatten_dims must be in [1,", rank - 1, "] for x '",
              x.name(), "' of ", x.type(), ", got ", o.num_flatten_dims);
  int64_t inputs = 1;
  for (int i = kept; i < rank; ++i) {
    layer.check(x.shape()[i] > 0, "dimension ", i, " of x '", x.name(), "' of ", x.type(),
                " is multiplied with the weight and must be known");
    inputs *= x.shape()[i];
  }
  const Var w =
      layer.parameter("w_0", {inputs, o.size}, o.weight_attr, init::xavier_uniform(), x.dtype());
  const Var b =
      o.bias ? layer.parameter("b_0", {o.size}, o.bias_attr, init::constant(0), x.dtype()) : Var();
  const Var out =
      layer.builder().op("fc", {{"x", x}, {"w", w}, {"bias", b}}, {{"num_flatten_dims", kept}});
  return activation(out, o.act, where);
}

}  // namespace fleetx::nn
