#include "fleetx/ops/product.h"

namespace fleetx {
namespace {

using dnnl::algorithm;
using onednn::memory;

algorithm activation(const std::string& act) {
  if (act == "relu") return algorithm::eltwise_relu;
  if (act == "gelu") return algorithm::eltwise_gelu_erf;
  if (act == "tanh") return algorithm::eltwise_tanh;
  FLEETX_CHECK(act == "sigmoid", "act '", act, "'");
  return algorithm::eltwise_logistic;
}

}  // namespace

memory::desc matrices(const Shape& batch, int64_t rows, int64_t columns, bool transposed) {
  Shape shape = batch;
  shape.push_back(rows);
  shape.push_back(columns);
  Layout layout;
  if (transposed) {
    for (int d = 0; d < shape.rank(); ++d) layout.order.push_back(d);
    std::swap(layout.order[layout.order.size() - 2], layout.order.back());
  }
  return onednn::desc(DType::kF32, shape, layout);
}

Product::Product(kernel::Prepare& p, const memory::desc& a, const memory::desc& b,
                 const memory::desc& c, const ProductOptions& options)
    : a_(a), b_(b), c_(c) {
  dnnl::primitive_attr attr = onednn::attributes();
  if (options.alpha != 1.0f) attr.set_output_scales(0, {options.alpha});
  if (!options.act.empty()) {
    dnnl::post_ops after;
    after.append_eltwise(1.0f, activation(options.act), 0.0f, 0.0f);
    attr.set_post_ops(after);
  }
  if (options.bias) bias_ = matrix(1, c.dims().back());
  primitive_ = onednn::guarded(p.op(), [&] {
    return onednn::Primitive(
        p, dnnl::matmul::primitive_desc({a_, b_, bias_, c_}, attr, onednn::engine()));
  });
}

Product& Product::bind(kernel::Slot a, kernel::Slot b, kernel::Slot c, kernel::Slot bias) {
  primitive_.arg(DNNL_ARG_SRC, a, a_)
      .arg(DNNL_ARG_WEIGHTS, b, b_)
      .arg(DNNL_ARG_BIAS, bias, bias_)
      .arg(DNNL_ARG_DST, c, c_);
  return *this;
}

}  // namespace fleetx
