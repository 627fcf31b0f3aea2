// What all layers share: options of a parameter, and the scope of one layer. A layer named fc_0
// owns the parameters fc_0.w_0 and fc_0.b_0; using a name twice shares them.
#pragma once

#include <optional>
#include <string>

#include "fleetx/nn/call.h"
#include "fleetx/nn/initializer.h"

namespace fleetx::nn {

struct ParamAttr {
  std::string name = "";  // empty: after the layer
  Init init = nullptr;
  double lr = 1.0;  // factor on the learning rate
  // Decay of this parameter alone; without one, that of the optimizer holds.
  std::optional<double> l1 = std::nullopt;
  std::optional<double> l2 = std::nullopt;
  bool trainable = true;
  bool need_clip = true;        // takes part in gradient clipping
  bool is_distributed = false;  // on the parameter servers, where the job has some
};
// What the parameter's variable carries of it: only what differs from the defaults, so that program
// texts stay short.
ir::Attrs attrs_of(const ParamAttr& attr);

// While it lives, ops of the builder carry the layer's name and the user's line.
class Layer {
 public:
  // An empty name becomes kind_0, kind_1, ...
  Layer(ir::Builder& builder, const std::string& name, const std::string& kind, const Where& where);

  ir::Builder& builder() const { return b_; }
  const std::string& name() const { return name_; }
  // `suffix` is w_0, b_0, ...; `fallback` serves where attr has no initializer.
  Var parameter(std::string_view suffix, Shape shape, const ParamAttr& attr, const Init& fallback,
                DType dtype = f32) const;
  // "train.cc:41: conv2d 'conv2d_0': " in front of a message about wrong options.
  template <class... Parts>
  void check(bool ok, const Parts&... message) const {
    check_arg(ok, b_.loc(), ": ", kind_, " '", name_, "': ", message...);
  }

 private:
  ir::Builder& b_;
  std::string kind_, name_;
  ir::Builder::Inherited at_, in_;
};

}  // namespace fleetx::nn
