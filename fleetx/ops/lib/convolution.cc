#include "fleetx/ops/lib/convolution.h"

#include "fleetx/base/cpu.h"
#include "fleetx/ops/lib/bf16.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

using dnnl::algorithm;
using dnnl::query;
using onednn::memory;

std::optional<memory::desc> tensor_desc(DType dtype, const Shape& shape,
                                        const std::optional<Layout>& layout) {
  return layout ? onednn::desc(dtype, shape, *layout) : onednn::any_desc(dtype, shape);
}

// From this share of the peak on nothing better is looked for.
constexpr double kGood = 0.5;

struct Descs {
  memory::desc src, weights, bias, dst;
};

dnnl::convolution_forward::primitive_desc forward(const Convolution& c, const Descs& d,
                                                  const memory::dims& dilates, algorithm algorithm,
                                                  const ConvOptions& options) {
  dnnl::primitive_attr attr = onednn::attributes();
  dnnl::post_ops after = options.after;
  if (options.relu) after.append_eltwise(1.0f, algorithm::eltwise_relu, 0.0f, 0.0f);
  attr.set_post_ops(after);
  return {{dnnl::prop_kind::forward_training, algorithm, d.src, d.weights, d.bias, d.dst, c.stride,
           dilates, c.pad_before, c.pad_after},
          attr,
          onednn::engine()};
}

// Nothing where oneDNN refuses, or chooses a layout that we cannot name.
std::optional<ConvChoice> attempt(ConvPass pass, const Convolution& c, algorithm algorithm,
                                  const ConvLayouts& wish, const ConvOptions& options) {
  const auto src = tensor_desc(c.dtype, c.src, wish.src),
             dst = tensor_desc(c.dtype, c.dst, wish.dst);
  const DType made = c.dtype == f32 ? f32 : c.dweights_type;
  const auto w = weights_desc(c, pass == ConvPass::kWeights ? made : c.dtype, wish.weights);
  if (!w) return std::nullopt;
  Descs d{*src, *w, {}, *dst};
  if (options.bias) d.bias = onednn::desc(made, {c.dst[1]});
  const memory::dims dilates{c.dilation[0] - 1, c.dilation[1] - 1};
  ConvChoice choice;
  try {
    // The backward computations take a forward one as a hint; it need not be one that is run.
    const Descs hint{onednn::any_desc(c.dtype, c.src), *weights_desc(c, c.dtype, {}), d.bias,
                     onednn::any_desc(c.dtype, c.dst)};
    switch (pass) {
      case ConvPass::kForward:
        choice.pd = forward(c, d, dilates, algorithm, options);
        choice.src_md = choice.pd.query_md(query::src_md);
        choice.weights_md = choice.pd.query_md(query::weights_md);
        choice.dst_md = choice.pd.query_md(query::dst_md);
        break;
      case ConvPass::kData:
        choice.pd = dnnl::convolution_backward_data::primitive_desc(
            {algorithm, d.src, d.weights, d.dst, c.stride, dilates, c.pad_before, c.pad_after},
            onednn::attributes(), onednn::engine(), forward(c, hint, dilates, algorithm, {}));
        choice.src_md = choice.pd.query_md(query::diff_src_md);
        choice.weights_md = choice.pd.query_md(query::weights_md);
        choice.dst_md = choice.pd.query_md(query::diff_dst_md);
        break;
      case ConvPass::kWeights:
        choice.pd = dnnl::convolution_backward_weights::primitive_desc(
            {algorithm, d.src, d.weights, d.bias, d.dst, c.stride, dilates, c.pad_before,
             c.pad_after},
            onednn::attributes(), onednn::engine(), forward(c, hint, dilates, algorithm, {}));
        choice.src_md = choice.pd.query_md(query::src_md);
        choice.weights_md = choice.pd.query_md(query::diff_weights_md);
        choice.dst_md = choice.pd.query_md(query::diff_dst_md);
        break;
    }
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
  const auto src_layout = onednn::layout_of(choice.src_md);
  const auto weights_layout = c.groups == 1 ? onednn::layout_of(choice.weights_md)
                                            : onednn::grouped_layout_of(choice.weights_md);
  const auto dst_layout = onednn::layout_of(choice.dst_md);
  if (!src_layout || !weights_layout || !dst_layout) return std::nullopt;
  choice.src = *src_layout;
  choice.weights = *weights_layout;
  choice.dst = *dst_layout;
  choice.share = share_of_peak(pass, c, choice.pd.impl_info_str());
  return choice;
}

void check_pair(const ir::Infer& c, std::string_view name, int64_t least) {
  const auto values = c.attr<ir::Ints>(name);
  const bool four = name == "padding" && values.size() == 4;
  c.check(four || values.size() == 2, name, " has ", values.size(), " numbers; expected ",
          name == "padding" ? "2 (height, width) or 4 (top, bottom, left, right)"
                            : "2 (height, width)");
  for (const int64_t v : values) c.check(v >= least, name, " has a ", v, "; at least ", least);
}

}  // namespace

std::optional<memory::desc> weights_desc(const Convolution& c, DType dtype,
                                         const std::optional<Layout>& layout) {
  if (c.groups == 1) return tensor_desc(dtype, c.weights, layout);
  if (layout) return onednn::grouped_desc(dtype, c.weights, c.groups, *layout);
  const Shape& w = c.weights;
  return onednn::any_desc(dtype, {c.groups, w[0] / c.groups, w[1], w[2], w[3]});
}

bool computes_in_bf16(const kernel::Prepare& p, std::span<const ConvPass> passes,
                      const Convolution& c) {
  if (p.in("x").dtype != bf16 || !multiplies_bf16() || p.skips().layout) return false;
  Convolution in_bf16 = c;
  in_bf16.dtype = bf16;
  in_bf16.dweights_type = p.in("w").dtype;
  return std::all_of(passes.begin(), passes.end(), [&](ConvPass pass) {
    const auto choice = attempt(pass, in_bf16, algorithm::convolution_direct, {}, {});
    return choice && choice->share >= kSlow;
  });
}

bool winograd_pays(ConvPass pass, const Convolution& c) {
  const ir::Ints one{1, 1};
  if (c.groups != 1 || c.weights[2] != 3 || c.weights[3] != 3 || c.stride != one ||
      c.dilation != one)
    return false;
  const int64_t tiles = c.dst[0] * ((c.dst[2] + 3) / 4) * ((c.dst[3] + 3) / 4);
  const bool own = cpu::best_isa() == cpu::Isa::kAvx2;
  const int64_t least = !own ? 48 : pass == ConvPass::kForward ? 4 : 16;
  return tiles >= least && std::min(c.src[1], c.dst[1]) >= 32;
}

double share_of_peak(ConvPass pass, const Convolution& c, std::string_view implementation) {
  const auto has = [&](std::string_view part) { return implementation.find(part) != part.npos; };
  const int64_t inputs = c.src[1] / c.groups, outputs = c.dst[1] / c.groups;
  if (has("ref")) return 0.001;
  if (has("gemm")) {
    const ir::Ints one{1, 1}, none{0, 0};
    const bool unfolds =
        c.weights.numel(2, 4) > 1 || c.stride != one || c.pad_before != none || c.pad_after != none;
    const bool forward = pass == ConvPass::kForward;
    const double per_output = !unfolds ? 0.2 : forward ? 0.02 : 0.011;
    const auto inner = static_cast<double>(c.weights.numel(1, 4));
    return std::min(0.45, per_output * static_cast<double>(outputs)) *
           std::min(1.0, inner / (forward   ? 25
                                  : unfolds ? 16
                                            : 40));
  }
  if (has("_dw")) return 0.4;
  const int64_t lanes = cpu::best_isa() >= cpu::Isa::kAvx512 ? 16 : 8;
  const auto full = [lanes](int64_t n) {
    return static_cast<double>(n) / static_cast<double>((n + lanes - 1) / lanes * lanes);
  };
  // With few inputs forward broadcasts single values of x, and so does the gradient of weights for
  // images of three colours.
  const bool broadcasts =
      (pass == ConvPass::kForward && inputs < lanes) || (pass == ConvPass::kWeights && inputs == 3);
  return 0.7 * full(outputs) * (broadcasts ? 1.0 : full(inputs));
}

Convolution with_rows(Convolution c) {
  if (c.src[3] != 1 || c.weights[3] != 1 || c.dst[3] != 1 || c.src[2] == 1) return c;
  for (Shape* shape : {&c.src, &c.weights, &c.dst}) std::swap((*shape)[2], (*shape)[3]);
  for (ir::Ints* pair : {&c.stride, &c.dilation, &c.pad_before, &c.pad_after})
    std::swap((*pair)[0], (*pair)[1]);
  return c;
}

double Convolution::flops() const {
  return 2.0 * static_cast<double>(dst.numel()) * static_cast<double>(weights.numel(1, 4));
}

void check_convolution(const ir::Infer& c) {
  const DType dtype = c.in("x").dtype;
  c.check(is_f32_or_half(dtype) && c.in("x").shape.rank() == 4, c.show("x"),
          "; expected f32, bf16 or f16 of rank 4");
  c.check((c.in("w").dtype == f32 || c.in("w").dtype == dtype) && c.in("w").shape.rank() == 4,
          c.show("w"), "; expected f32 of rank 4, or in the dtype of x");
  check_pair(c, "stride", 1);
  check_pair(c, "dilation", 1);
  check_pair(c, "padding", 0);
  const Shape& w = c.in("w").shape;
  for (const int64_t d : w) c.check(d > 0, c.show("w"), "; every dimension must be positive");
  const auto groups = c.attr<int64_t>("groups");
  c.check(groups >= 1 && w[0] % groups == 0, "groups is ", groups, ", ", c.show("w"),
          "; dimension 0 of w must be a multiple of groups");
}

Convolution conv2d_geometry(const ir::Infer& c) {
  Convolution g = convolution_attrs(c);
  g.src = c.in("x").shape;
  g.weights = c.in("w").shape;
  g.dst = {g.src[0], g.weights[0], 0, 0};
  for (int i = 0; i < 2; ++i) {
    const auto d = static_cast<size_t>(i);
    const int64_t room = g.src[2 + i] + g.pad_before[d] + g.pad_after[d];
    const int64_t span = g.dilation[d] * (g.weights[2 + i] - 1) + 1;
    c.check(room >= span, c.show("x"), ", ", c.show("w"), "; with padding x is ", room,
            " long in dimension ", 2 + i, ", but the kernel spans ", span);
    g.dst[2 + i] = (room - span) / g.stride[d] + 1;
  }
  return g;
}

Convolution conv2d_geometry(const kernel::Prepare& p, const Shape& dst) {
  Convolution g = convolution_attrs(p);
  g.src = p.in("x").shape;
  g.weights = p.in("w").shape;
  g.dst = dst;
  return with_rows(g);
}

void check_conv2d(const ir::Infer& c) {
  check_convolution(c);
  const Shape &x = c.in("x").shape, &w = c.in("w").shape;
  const auto groups = c.attr<int64_t>("groups");
  c.check(x[1] == w[1] * groups, c.show("x"), ", ", c.show("w"), ", groups ", groups, "; x has ",
          x[1], " channels, w expects ", w[1] * groups);
  const auto act = c.attr<std::string>("act");
  c.check(act.empty() || act == "relu", "act is '", act, "'; known: '' and 'relu'");
}

std::vector<ConvLayouts> conv2d_wishes(const kernel::Prepare& p, std::optional<Layout> dst) {
  std::vector<ConvLayouts> list;
  if (!p.in("w").layout.is_plain()) list.push_back({{}, p.in("w").layout, dst});
  list.push_back({{}, {}, dst});
  return list;
}

bool ConvChoice::is_winograd() const {
  return std::string_view(pd.impl_info_str()).find("wino") != std::string_view::npos;
}

ConvChoice choose(const kernel::Prepare& p, ConvPass pass, const Convolution& c,
                  std::vector<ConvLayouts> wishes, const ConvOptions& options) {
  ConvLayouts plain = wishes.back();
  for (std::optional<Layout>* part : {&plain.src, &plain.weights, &plain.dst})
    if (!*part) *part = Layout::plain();
  if (p.skips().layout) wishes.clear();
  wishes.push_back(plain);
  std::optional<ConvChoice> best;
  std::vector<algorithm> algorithms{algorithm::convolution_direct};
  if (c.dtype == f32 && winograd_pays(pass, c) && !p.skips().winograd)
    algorithms.insert(algorithms.begin(), algorithm::convolution_winograd);
  for (const algorithm algorithm : algorithms) {
    for (const ConvLayouts& wish : wishes) {
      std::optional<ConvChoice> found = attempt(pass, c, algorithm, wish, options);
      if (found && (!best || found->share > best->share)) best = std::move(found);
      if (best && best->share >= kGood) return *best;
    }
  }
  if (!best)
    fail(Error::Kind::kUnsupported,
         str(ir::describe(p.op()), "oneDNN has no implementation of this convolution"));
  return *best;
}

}  // namespace fleetx::ops
