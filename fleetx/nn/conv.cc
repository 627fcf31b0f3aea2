#include "fleetx/nn/conv.h"

#include "fleetx/nn/activation.h"

namespace fleetx::nn {
namespace {

// Checks what creating the weight needs; the op checks the rest.
int64_t channels_of(const Layer& layer, const Var& x, int64_t filters, int64_t groups) {
  layer.check(x.shape().rank() == 4 && x.shape()[1] > 0,
              "x must be an image [N,C,H,W] with known channels, got '", x.name(), "' of ",
              x.type());
  const int64_t channels = x.shape()[1];
  layer.check(filters > 0, "filters must be positive, got ", filters);
  layer.check(groups > 0 && channels % groups == 0 && filters % groups == 0, "groups=", groups,
              " must divide the channels ", channels, " and the filters ", filters);
  return channels;
}

Var bias_of(const Layer& layer, bool wanted, int64_t filters, const ParamAttr& attr, DType dtype) {
  return wanted ? layer.parameter("b_0", {filters}, attr, init::constant(0), dtype) : Var();
}

}  // namespace

Var conv2d(const Var& x, Conv2dOptions o, Where where) {
  const Layer layer(x.builder(), o.name, "conv2d", where);
  const int64_t channels = channels_of(layer, x, o.filters, o.groups);
  const Var w =
      layer.parameter("w_0", {o.filters, channels / o.groups, o.kernel.height, o.kernel.width},
                      o.weight_attr, init::msra_normal(), x.dtype());
  const Var b = bias_of(layer, o.bias, o.filters, o.bias_attr, x.dtype());
  const Var out =
      layer.builder().op("conv2d", {{"x", x}, {"w", w}, {"bias", b}},
                         {{"stride", o.stride.ints()},
                          {"padding", o.padding.resolve(x, o.kernel, o.stride, o.dilation, where)},
                          {"dilation", o.dilation.ints()},
                          {"groups", o.groups}});
  return activation(out, o.act, where);
}

Var conv2d_transpose(const Var& x, Conv2dTransposeOptions o, Where where) {
  const Layer layer(x.builder(), o.name, "conv2d_transpose", where);
  const int64_t channels = channels_of(layer, x, o.filters, o.groups);
  layer.check(!o.padding.is_same(), "padding \"SAME\" is not defined for a transposed convolution");
  const Var w =
      layer.parameter("w_0", {channels, o.filters / o.groups, o.kernel.height, o.kernel.width},
                      o.weight_attr, init::xavier_uniform(), x.dtype());
  const Var b = bias_of(layer, o.bias, o.filters, o.bias_attr, x.dtype());
  const Var out =
      layer.builder().op("conv2d_transpose", {{"x", x}, {"w", w}, {"bias", b}},
                         {{"stride", o.stride.ints()},
                          {"padding", o.padding.resolve(x, o.kernel, o.stride, o.dilation, where)},
                          {"output_padding", o.output_padding.ints()},
                          {"dilation", o.dilation.ints()},
                          {"groups", o.groups}});
  return activation(out, o.act, where);
}

}  // namespace fleetx::nn
