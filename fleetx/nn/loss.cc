#include "fleetx/nn/loss.h"

namespace fleetx::nn {
namespace {

Var loss(std::string_view op, const Var& x, const Var& label, ir::Attrs attrs, const Where& where) {
  return call(x, op, {{"x", x}, {"label", label}}, std::move(attrs), where)["out"];
}

ir::Attrs attrs_of(const CrossEntropyOptions& o) {
  return {{"soft_label", o.soft_label}, {"ignore_index", o.ignore_index}, {"axis", o.axis}};
}

}  // namespace

Var cross_entropy(const Var& x, const Var& label, CrossEntropyOptions o, Where where) {
  return loss("cross_entropy", x, label, attrs_of(o), where);
}
Var softmax_cross_entropy(const Var& logits, const Var& label, CrossEntropyOptions o, Where where) {
  ir::Attrs attrs = attrs_of(o);
  attrs.emplace("smoothing", o.smoothing);
  return loss("softmax_cross_entropy", logits, label, std::move(attrs), where);
}
Var sigmoid_cross_entropy(const Var& logits, const Var& label, SigmoidCrossEntropyOptions o,
                          Where where) {
  return loss("sigmoid_cross_entropy", logits, label,
              {{"ignore_index", o.ignore_index}, {"normalize", o.normalize}}, where);
}
Var log_loss(const Var& x, const Var& label, double epsilon, Where where) {
  return loss("log_loss", x, label, {{"epsilon", epsilon}}, where);
}
Var mse_loss(const Var& x, const Var& label, Where where) {
  return loss("mse_loss", x, label, {}, where);
}
Var l1_loss(const Var& x, const Var& label, Where where) {
  return loss("l1_loss", x, label, {}, where);
}
Var smooth_l1_loss(const Var& x, const Var& label, double delta, Where where) {
  return loss("smooth_l1_loss", x, label, {{"delta", delta}}, where);
}

}  // namespace fleetx::nn
