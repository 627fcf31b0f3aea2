#include "fleetx/tensor/tensor.h"

#include <cstring>

namespace fleetx {

Tensor::Tensor(DType dtype, Shape shape, Layout layout)
    : dtype_(dtype), shape_(std::move(shape)), layout_(std::move(layout)) {
  check_arg(shape_.known(), "cannot allocate a tensor of shape ", shape_,
            ": a dimension is unknown");
  constexpr int64_t kMax = int64_t{1} << 46;  // elements; more than any machine has memory for
  check_arg(layout_.padded(shape_).numel() <= kMax, "cannot allocate a tensor of shape ", shape_,
            ": it is too large");
  buffer_ = Buffer::allocate(bytes());
}

Tensor Tensor::view(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.buffer_ = Buffer::view(data, t.bytes(), std::move(owner));
  return t;
}

void Tensor::check_type(DType asked) const {
  check_arg(dtype_ == asked, "this tensor holds ", dtype_, ", asked for ", asked);
}

Tensor Tensor::to(const Layout& layout) const {
  if (layout == layout_) return *this;
  Tensor out(dtype_, shape_, layout);
  convert_layout(dtype_, shape_, raw(), layout_, out.raw(), layout);
  return out;
}

Tensor Tensor::clone() const {
  Tensor out(dtype_, shape_, layout_);
  if (bytes() > 0) std::memcpy(out.raw(), raw(), bytes());
  return out;
}

Tensor Tensor::reshaped(Shape shape) const {
  check_arg(layout_.is_plain(), "only a row-major tensor can be reshaped");
  check_arg(shape.numel() == numel(), "cannot reshape ", shape_, " to ", shape);
  Tensor out = *this;
  out.shape_ = std::move(shape);
  return out;
}

}  // namespace fleetx
