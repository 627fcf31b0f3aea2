#include "fleetx/models/lenet.h"

#include "fleetx/nn/conv.h"
#include "fleetx/nn/fc.h"
#include "fleetx/nn/pool.h"

namespace fleetx::models {

Network lenet(const Var& image, LeNetOptions o, Where where) {
  const auto at = image.builder().at(ir::Loc::of(where));
  Network net;
  Var x = image;
  for (const int64_t filters : {o.filters_1, o.filters_2}) {
    x = nn::conv2d(x, {.filters = filters, .kernel = 5, .act = "relu"});
    x = nn::pool2d(x, {.kernel = 2, .stride = 2});
    net.checkpoints.push_back(x.name());
  }
  x = nn::fc(x, {.size = o.hidden, .act = "relu"});
  net.logits = nn::fc(x, {.size = o.classes});
  return net;
}

}  // namespace fleetx::models
