#include "fleetx/models/vgg.h"

#include "fleetx/nn/conv.h"
#include "fleetx/nn/fc.h"
#include "fleetx/nn/pool.h"
#include "fleetx/nn/source.h"

namespace fleetx::models {

Network vgg16(const Var& image, Vgg16Options o, Where where) {
  const auto at = image.builder().at(ir::Loc::of(where));
  const LayerNames named(image.builder(), o.name, "vgg16", "conv1_1");
  struct Stage {
    int convolutions;
    int64_t filters;
  };
  Network net;
  Var x = image;
  int stage_number = 0;
  for (const Stage stage :
       {Stage{2, 64}, Stage{2, 128}, Stage{3, 256}, Stage{3, 512}, Stage{3, 512}}) {
    ++stage_number;
    for (int i = 1; i <= stage.convolutions; ++i)
      x = nn::conv2d(x, {.filters = stage.filters,
                         .kernel = 3,
                         .padding = 1,
                         .act = "relu",
                         .name = named(str("conv", stage_number, "_", i))});
    x = nn::pool2d(x, {.kernel = 2, .stride = 2});
    net.checkpoints.push_back(x.name());
  }
  for (const char* name : {"fc6", "fc7"}) {
    x = nn::fc(x, {.size = 4096, .act = "relu", .name = named(name)});
    x = nn::dropout(x, {.p = o.dropout});
  }
  net.logits = nn::fc(x, {.size = o.classes, .name = named("fc8")});
  return net;
}

}  // namespace fleetx::models
