// The inner loops of element-wise ops, by op type and dtype. The ops themselves run them over whole
// tensors, fused_elementwise block by block. A formula is written once, as a function object:
//
//   struct Square {
//     explicit Square(const ir::Attrs&) {}
//     template <class T> T operator()(T x) const { return x * x; }
//   };
//   const RegisterLoop loop("square", make_loop<Square, 1>);
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fleetx/base/simd.h"
#include "fleetx/ir/attr.h"
#include "fleetx/kernel/kernel.h"

namespace fleetx::ops {

class ElementLoop {
 public:
  virtual ~ElementLoop() = default;
  // out[i] = f(in[0][i], in[1][i], ...) for i < n. out may be the memory of an input.
  virtual void run(const void* const* in, void* out, int64_t n) const = 0;
  virtual int inputs() const = 0;
  // Whether zeros give zero, so that the padding of a blocked layout stays clean.
  bool keeps_zero() const;
};

using MakeLoop = std::unique_ptr<ElementLoop> (*)(const ir::Attrs& attrs, DType dtype);

struct RegisterLoop {
  RegisterLoop(const std::string& type, MakeLoop make);
};

// Null where the op has no loop for this dtype (or at all). 16-bit floats are computed by the loop
// for f32.
std::unique_ptr<ElementLoop> make_element_loop(std::string_view type, const ir::Attrs& attrs,
                                               DType dtype);

// The kernel of an op whose inputs and output have one shape and dtype: its loop over all of them,
// in whatever layout they come.
std::unique_ptr<kernel::Kernel> make_element_kernel(kernel::Prepare& p);

namespace detail {

// f32 gets a version per instruction set; for the other types one is enough.
template <class T, class Body>
void run_loop(const Body& body) {
  if constexpr (std::is_same_v<T, float>)
    vectorized(body);
  else
    body();
}

template <class F, class T, int kInputs>
class LoopOf final : public ElementLoop {
 public:
  explicit LoopOf(const ir::Attrs& attrs) : f_(attrs) {}

  int inputs() const override { return kInputs; }
  void run(const void* const* in, void* out, int64_t n) const override {
    const F f = f_;
    const T* a = static_cast<const T*>(in[0]);
    const T* b = kInputs > 1 ? static_cast<const T*>(in[1]) : nullptr;
    T* to = static_cast<T*>(out);
    // ivdep: `to` may be the very memory of an input, but never overlaps it otherwise.
    run_loop<T>([=] {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (kInputs == 1)
          to[i] = f(a[i]);
        else
          to[i] = f(a[i], b[i]);
      }
    });
  }

 private:
  F f_;
};

}  // namespace detail

template <class F, int kInputs>
std::unique_ptr<ElementLoop> make_float_loop(const ir::Attrs& attrs, DType dtype) {
  if (dtype == f32) return std::make_unique<detail::LoopOf<F, float, kInputs>>(attrs);
  if (dtype == f64) return std::make_unique<detail::LoopOf<F, double, kInputs>>(attrs);
  return nullptr;
}

// Floats and integers.
template <class F, int kInputs>
std::unique_ptr<ElementLoop> make_loop(const ir::Attrs& attrs, DType dtype) {
  if (dtype == i32) return std::make_unique<detail::LoopOf<F, int32_t, kInputs>>(attrs);
  if (dtype == i64) return std::make_unique<detail::LoopOf<F, int64_t, kInputs>>(attrs);
  return make_float_loop<F, kInputs>(attrs, dtype);
}

}  // namespace fleetx::ops
