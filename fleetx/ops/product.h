// Products of matrices by oneDNN, for matmul and fc: c = act(alpha * a * b + bias).
#pragma once

#include <string>

#include "fleetx/ops/onednn.h"

namespace fleetx {

// A stack of row-major matrices [batch..., rows, columns]; `transposed`: in memory they are
// [batch..., columns, rows].
onednn::memory::desc matrices(const Shape& batch, int64_t rows, int64_t columns,
                              bool transposed = false);
inline onednn::memory::desc matrix(int64_t rows, int64_t columns, bool transposed = false) {
  return matrices({}, rows, columns, transposed);
}

struct ProductOptions {
  float alpha = 1.0f;
  bool bias = false;     // one value per column of c
  std::string act = {};  // "", relu, gelu (the exact one), tanh, sigmoid
};

// Arguments: DNNL_ARG_SRC a, DNNL_ARG_WEIGHTS b, DNNL_ARG_BIAS, DNNL_ARG_DST c. The batches of a
// and b broadcast.
class Product {
 public:
  Product() = default;
  Product(kernel::Prepare& p, const onednn::memory::desc& a, const onednn::memory::desc& b,
          const onednn::memory::desc& c, const ProductOptions& options = {});
  Product& bind(kernel::Slot a, kernel::Slot b, kernel::Slot c, kernel::Slot bias = {});
  void run(const kernel::Run& r) { primitive_.run(r); }
  explicit operator bool() const { return static_cast<bool>(primitive_); }
  std::string_view implementation() const { return primitive_.implementation(); }

 private:
  onednn::Primitive primitive_;
  onednn::memory::desc a_, b_, c_, bias_;
};

}  // namespace fleetx
