#include "fleetx/ops/lib/bf16_product.h"

#include "fleetx/ops/lib/bf16.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

using onednn::memory;

memory::desc matrix(DType dtype, int64_t rows, int64_t columns, bool transposed) {
  return onednn::desc(dtype, {rows, columns}, transposed ? Layout{{1, 0}, {}} : Layout::plain());
}

}  // namespace

bool Bf16Product::wanted(const Gemm& g) {
  return g.type_a == bf16 && g.type_b != f16 && g.type_c != f16 && multiplies_bf16();
}

Bf16Product::Bf16Product(kernel::Prepare& p, const Gemm& g, kernel::Slot a, kernel::Slot b,
                         kernel::Slot c, kernel::Slot bias) {
  const memory::desc of_a = matrix(bf16, g.rows, g.inner, g.transpose_a),
                     of_b = matrix(g.type_b, g.inner, g.columns, g.transpose_b),
                     of_c = matrix(g.type_c, g.rows, g.columns, false),
                     of_bias = bias ? onednn::desc(g.type_b, {1, g.columns}) : memory::desc();
  dnnl::primitive_attr attr = onednn::attributes();
  if (g.alpha != 1.0f) attr.set_output_scales(0, {g.alpha});
  if (g.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attr.set_post_ops(sum);
  }
  const auto make = [&](const memory::desc& weights) {
    return dnnl::matmul::primitive_desc({of_a, weights, of_bias, of_c}, attr, onednn::engine());
  };
  onednn::guarded(p.op(), [&] {
    const auto pd = make(onednn::any_desc(bf16, {g.inner, g.columns}));
    kernel::Slot packed = b;
    if (pd.weights_desc() != of_b) {
      packed = p.scratch(pd.weights_desc().get_size());
      pack_ = onednn::reorder(p, b, of_b, packed, pd.weights_desc());
    }
    product_ = onednn::Primitive(p, pd);
    product_.arg(DNNL_ARG_SRC, a, of_a)
        .arg(DNNL_ARG_WEIGHTS, packed, pd.weights_desc())
        .arg(DNNL_ARG_BIAS, bias, of_bias)
        .arg(DNNL_ARG_DST, c, of_c);
    return 0;
  });
}

void Bf16Product::run(const kernel::Run& r) {
  if (pack_) pack_.run(r);
  product_.run(r);
}

}  // namespace fleetx::ops
