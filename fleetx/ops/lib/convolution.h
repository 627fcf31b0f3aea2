// What conv2d and conv2d_transpose share: the geometry of a convolution and its three computations
// by oneDNN, with the choice of layouts. A transposed convolution is the gradient of one:
//
//                     src             weights                 dst
//   conv2d            x [N,C,H,W]     w [O, C/groups, kh, kw]  out [N,O,h,w]
//   conv2d_transpose  out [N,O,H,W]   w [C, O/groups, kh, kw]  x [N,C,h,w]
#pragma once

#include <optional>
#include <span>

#include "fleetx/ir/infer.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/onednn.h"

namespace fleetx::ops {

struct Convolution {
  Shape src, weights, dst;
  DType dtype = f32;          // of src and dst, and of weights that are read: f32 or bf16
  DType dweights_type = f32;  // of weights that are made
  int64_t groups = 1;
  ir::Ints stride, dilation, pad_before, pad_after;  // height, width

  double flops() const;  // of each of the three computations
};

// Attributes stride, padding (2 or 4 numbers), dilation and groups.
template <class Args>
Convolution convolution_attrs(const Args& args) {
  Convolution c;
  c.stride = args.template attr<ir::Ints>("stride");
  c.dilation = args.template attr<ir::Ints>("dilation");
  c.groups = args.template attr<int64_t>("groups");
  const auto p = args.template attr<ir::Ints>("padding");
  c.pad_before = p.size() == 4 ? ir::Ints{p[0], p[2]} : p;
  c.pad_after = p.size() == 4 ? ir::Ints{p[1], p[3]} : p;
  return c;
}

// Checks them and what both ops demand of x and w.
void check_convolution(const ir::Infer& c);

// A column of places is taken as a row of them, which is the same memory: generated code works on
// several places of a row at once.
Convolution with_rows(Convolution c);

// For ops with the arguments of conv2d.
void check_conv2d(const ir::Infer& c);
Convolution conv2d_geometry(const ir::Infer& c);
Convolution conv2d_geometry(const kernel::Prepare& p, const Shape& dst);

// Weights in a layout, or in the one that oneDNN will choose; nothing where a block crosses groups.
std::optional<onednn::memory::desc> weights_desc(const Convolution& c, DType dtype,
                                                 const std::optional<Layout>& layout);

// Convolutions of 16-bit floats without instructions for them: see in_f32.h.
inline constexpr BySample kConvBySample{{"x", "out", "residual", "dout", "dx"}, {"dw", "dbias"}};

enum class ConvPass { kForward, kData, kWeights };

// Winograd's F(4x4, 3x3) makes 4x4 places with a quarter of the multiplications, but its tiles go
// through memory. Measured with 16 to 512 channels, it wins from here on (up to 2.5x).
bool winograd_pays(ConvPass pass, const Convolution& c);

// Layouts to insist on; unset: oneDNN chooses.
struct ConvLayouts {
  std::optional<Layout> src, weights, dst;
};

struct ConvOptions {
  bool bias = false;
  // kForward only, in this order.
  dnnl::post_ops after = {};
  bool relu = false;
};

// One computation with its layouts settled.
struct ConvChoice {
  dnnl::primitive_desc_base pd;
  onednn::memory::desc src_md, weights_md, dst_md;
  Layout src, weights, dst;
  double share = 0;  // see share_of_peak

  bool is_winograd() const;
};

// Roughly the share of the CPU's peak that oneDNN's implementation of this name reaches, measured
// with AVX2 on one thread. It decides between implementations, and against our own:
//   generated code     0.7, times how full its vectors of channels are
//   depthwise code     0.4
//   unfolding (gemm)   at most 0.45; with few outputs most of the time goes into unfolding, and
//                      products with few values for each output are slow
//   reference code     0.001
double share_of_peak(ConvPass pass, const Convolution& c, std::string_view implementation);

// Below this share a computation gets a copy of its input in a layout of its own, if that is
// faster.
inline constexpr double kSlow = 0.3;

// Tries the wishes in turn, and then the last one with row-major for what it leaves open: the first
// with the largest share wins. Without layouts only the row-major one is tried. Winograd's
// algorithm comes first where it pays and oneDNN has it.
ConvChoice choose(const kernel::Prepare& p, ConvPass pass, const Convolution& c,
                  std::vector<ConvLayouts> wishes, const ConvOptions& options = {});

// Whether oneDNN has generated code for these computations in bf16 that uses the CPU's instructions
// for it. Else 16-bit floats are converted to f32.
bool computes_in_bf16(const kernel::Prepare& p, std::span<const ConvPass> passes,
                      const Convolution& c);

// Weights that stand in a layout of their own already were put there for speed: try that first.
std::vector<ConvLayouts> conv2d_wishes(const kernel::Prepare& p, std::optional<Layout> dst = {});

}  // namespace fleetx::ops
