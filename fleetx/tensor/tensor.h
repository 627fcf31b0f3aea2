// A typed, shaped block of memory. Copying a Tensor copies the handle, not the data. Tensors that
// users see are row-major; only those inside a Scope may have another layout.
#pragma once

#include <span>
#include <vector>

#include "fleetx/base/dtype.h"
#include "fleetx/base/error.h"
#include "fleetx/base/shape.h"
#include "fleetx/tensor/buffer.h"
#include "fleetx/tensor/layout.h"

namespace fleetx {

class Tensor {
 public:
  Tensor() = default;
  // Zero-filled.
  Tensor(DType dtype, Shape shape, Layout layout = Layout::plain());
  // A view of row-major memory.
  static Tensor view(DType dtype, Shape shape, void* data, std::shared_ptr<void> owner = nullptr);
  template <class T>
  static Tensor of(Shape shape, const std::vector<T>& values);
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({1}, {value});
  }

  bool defined() const { return buffer_.data() != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }
  int64_t numel() const { return shape_.numel(); }
  size_t bytes() const { return static_cast<size_t>(layout_.stored(shape_)) * size_of(dtype_); }
  void* raw() const { return buffer_.data(); }
  const Buffer& buffer() const { return buffer_; }

  // The elements in storage order, padding included. A wrong T is an error that names both types.
  template <class T>
  std::span<T> data() const;
  template <class T>
  T item() const;  // the only element

  Tensor to(const Layout& layout) const;  // itself if it has this layout
  Tensor plain() const { return to(Layout::plain()); }
  Tensor clone() const;
  Tensor reshaped(Shape shape) const;  // row-major only, same memory

 private:
  void check_type(DType asked) const;

  DType dtype_ = DType::kF32;
  Shape shape_;
  Layout layout_;
  Buffer buffer_;
};

template <class T>
Tensor Tensor::of(Shape shape, const std::vector<T>& values) {
  Tensor t(DTypeOf<T>::value, std::move(shape));
  check_arg(t.numel() == static_cast<int64_t>(values.size()), "a tensor of shape ", t.shape(),
            " needs ", t.numel(), " values, got ", values.size());
  std::copy(values.begin(), values.end(), static_cast<T*>(t.raw()));
  return t;
}

template <class T>
std::span<T> Tensor::data() const {
  check_type(DTypeOf<T>::value);
  return {static_cast<T*>(raw()), static_cast<size_t>(layout_.stored(shape_))};
}

template <class T>
T Tensor::item() const {
  check_arg(numel() == 1, "item() needs a tensor of one element, this one has shape ", shape_);
  return data<T>()[0];
}

}  // namespace fleetx
