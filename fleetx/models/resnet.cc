#include "fleetx/models/resnet.h"

#include <cmath>

#include "fleetx/nn/activation.h"
#include "fleetx/nn/conv.h"
#include "fleetx/nn/fc.h"
#include "fleetx/nn/math.h"
#include "fleetx/nn/norm.h"
#include "fleetx/nn/pool.h"

namespace fleetx::models {
namespace {

struct Design {
  std::vector<int> blocks;  // per stage
  bool bottleneck;
};

Design design_of(int depth, const ir::Loc& loc) {
  switch (depth) {
    case 18: return {{2, 2, 2, 2}, false};
    case 34: return {{3, 4, 6, 3}, false};
    case 50: return {{3, 4, 6, 3}, true};
    case 101: return {{3, 4, 23, 3}, true};
    default: break;
  }
  fail(Error::Kind::kInvalidArgument,
       str(loc, ": resnet: depth must be 18, 34, 50 or 101, got ", depth));
}

struct ConvBn {
  int64_t filters;
  int64_t kernel;
  int64_t stride = 1;
  std::string act = "relu";
};

Var conv_bn(const Var& x, const std::string& name, ConvBn o) {
  const Var y = nn::conv2d(x, {.filters = o.filters,
                               .kernel = o.kernel,
                               .stride = o.stride,
                               .padding = (o.kernel - 1) / 2,
                               .bias = false,  // batch norm has one
                               .name = name});
  return nn::batch_norm(y, {.act = o.act, .name = name + "_bn"});
}

Var shortcut(const Var& x, const std::string& name, int64_t channels, int64_t stride) {
  if (x.shape()[1] == channels && stride == 1) return x;
  return conv_bn(x, name, {.filters = channels, .kernel = 1, .stride = stride, .act = ""});
}

Var bottleneck_block(const Var& x, const std::string& name, int64_t width, int64_t stride) {
  Var y = conv_bn(x, name + "_branch2a", {.filters = width, .kernel = 1});
  y = conv_bn(y, name + "_branch2b", {.filters = width, .kernel = 3, .stride = stride});
  y = conv_bn(y, name + "_branch2c", {.filters = 4 * width, .kernel = 1, .act = ""});
  return nn::relu(nn::add(y, shortcut(x, name + "_branch1", 4 * width, stride)));
}

Var basic_block(const Var& x, const std::string& name, int64_t width, int64_t stride) {
  Var y = conv_bn(x, name + "_branch2a", {.filters = width, .kernel = 3, .stride = stride});
  y = conv_bn(y, name + "_branch2b", {.filters = width, .kernel = 3, .act = ""});
  return nn::relu(nn::add(y, shortcut(x, name + "_branch1", width, stride)));
}

}  // namespace

Network resnet(const Var& image, ResNetOptions o, Where where) {
  const auto at = image.builder().at(ir::Loc::of(where));
  const Design design = design_of(o.depth, image.builder().loc());
  const LayerNames named(image.builder(), o.name, "resnet", "conv1");
  Network net;
  Var x = o.small_images
              ? conv_bn(image, named("conv1"), {.filters = o.width, .kernel = 3})
              : conv_bn(image, named("conv1"), {.filters = o.width, .kernel = 7, .stride = 2});
  if (!o.small_images) x = nn::pool2d(x, {.kernel = 3, .stride = 2, .padding = 1});
  for (size_t stage = 0; stage < design.blocks.size(); ++stage) {
    const int64_t width = o.width << stage;
    for (int block = 0; block < design.blocks[stage]; ++block) {
      const std::string name = named(str("res", stage + 2, "_", block));
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = design.bottleneck ? bottleneck_block(x, name, width, stride)
                            : basic_block(x, name, width, stride);
      net.checkpoints.push_back(x.name());
    }
  }
  x = nn::pool2d(x, {.type = "avg", .global = true});
  const double bound = 1.0 / std::sqrt(static_cast<double>(x.shape()[1]));
  net.logits = nn::fc(x, {.size = o.classes,
                          .weight_attr = {.init = nn::init::uniform(-bound, bound)},
                          .name = named("fc")});
  return net;
}

}  // namespace fleetx::models
