// What the losses and metrics over classes share. x has classes on one axis (attribute `axis`, or
// the last one where the op has none). Hard labels are i64 or i32, one per position, in the shape
// of x with that axis of size 1 or left out. With the attribute soft_label they are f32 in the
// shape of x.
#pragma once

#include <string>

#include "fleetx/kernel/op.h"

namespace fleetx::ops {

// A tensor seen as [outer, classes, inner].
struct ClassAxis {
  int64_t outer, classes, inner;
  int64_t positions() const { return outer * inner; }
};

// `x` is the slot that has the classes.
void check_labels(const ir::Infer& c, std::string_view x);
Shape one_per_position(const ir::Infer& c, std::string_view x);  // shape of x with one class
ClassAxis class_axis(const kernel::Prepare& p, std::string_view x);
// infer of a gradient: dx is like `x`, dout has one value per position.
void infer_loss_grad(ir::Infer& c, std::string_view x);
// A registrar with the attributes of the losses; their gradients have the same ones.
ir::OpRegistrar class_loss(std::string type);
// Soft labels are constants: a gradient for them would be silently missing.
void refuse_label_gradient(const ir::Grad& g);

class Labels {
 public:
  Labels(kernel::Prepare& p, std::string_view x);

  // Hard labels by position.
  class View {
   public:
    View(const void* data, bool wide) : data_(data), wide_(wide) {}
    int64_t operator[](int64_t i) const {
      return wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
    }

   private:
    const void* data_;
    bool wide_;
  };

  // Each hard label must be a class or ignored(). Throws, so not to be called in a parallel region.
  View checked(const kernel::Run& r) const;
  // Null for hard labels.
  const float* soft(const kernel::Run& r) const { return soft_ ? r.in<float>(slot_) : nullptr; }
  int64_t ignored() const { return ignored_; }

 private:
  kernel::Slot slot_;
  bool soft_, wide_;
  int64_t classes_, positions_, ignored_;
  std::string where_;
};

}  // namespace fleetx::ops
