#include "fleetx/nn/layer.h"

namespace fleetx::nn {

ir::Attrs attrs_of(const ParamAttr& attr) {
  ir::Attrs attrs;
  if (attr.lr != 1.0) attrs.emplace("lr", attr.lr);
  if (attr.l1) attrs.emplace("l1", *attr.l1);
  if (attr.l2) attrs.emplace("l2", *attr.l2);
  if (!attr.need_clip) attrs.emplace("need_clip", false);
  return attrs;
}

Layer::Layer(ir::Builder& builder, const std::string& name, const std::string& kind,
             const Where& where)
    : b_(builder),
      kind_(kind),
      name_(name.empty() ? builder.unique_name(kind) : name),
      at_(builder.at(ir::Loc::of(where))),
      in_(builder.in_layer(name_)) {}

Var Layer::parameter(std::string_view suffix, Shape shape, const ParamAttr& attr,
                     const Init& fallback, DType dtype) const {
  check(shape.known(), "needs the shape ", shape,
        " for a parameter; only the batch dimension may be unknown");
  ir::ParameterSpec spec;
  spec.name = attr.name.empty() ? str(name_, ".", suffix) : attr.name;
  spec.init = (attr.init ? attr.init : fallback)(shape);
  spec.shape = std::move(shape);
  spec.dtype = dtype;
  spec.attrs = attrs_of(attr);
  spec.trainable = attr.trainable;
  spec.is_distributed = attr.is_distributed;
  return b_.parameter(spec);
}

}  // namespace fleetx::nn
