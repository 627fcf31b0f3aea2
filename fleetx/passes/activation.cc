#include "fleetx/passes/activation.h"

#include <algorithm>

namespace fleetx::passes {
namespace {

using Node = Graph::Node;

bool has_default_attrs(const ir::Op& op) {
  return std::all_of(op.def->attrs.begin(), op.def->attrs.end(), [&](const ir::AttrDef& def) {
    return def.fallback && op.attrs.at(def.name) == *def.fallback;
  });
}

void fuse_forward(Graph& g, Node op, const ActFusion& fusion) {
  if (!op->attr<std::string>("act").empty()) return;
  if (fusion.accepts && !fusion.accepts(g.program(), *op)) return;
  const Node act = g.only_reader(op->out("out").front());
  if (act == g.end() || !fusion.acts.contains(act->type()) || !has_default_attrs(*act)) return;
  const ir::Names out = act->out("out");
  if (act->role != op->role || g.producer(out.front()) != act) return;

  const std::string type = act->type();
  g.erase(act);
  g.set_outputs(op, "out", out);
  g.set_attr(op, "act", type);
}

// Does `grad` read the arguments and results of exactly this forward op?
bool is_grad_of(const ir::Op& grad, const ir::Op& forward) {
  const auto same_slot = [&](const std::vector<ir::SlotDef>& defs,
                             const std::vector<ir::Names>& slots, const std::string& name,
                             const ir::Names& wanted) {
    for (size_t s = 0; s < defs.size(); ++s)
      if (defs[s].name == name && slots[s] != wanted) return false;
    return true;
  };
  for (size_t s = 0; s < grad.inputs.size(); ++s) {
    const std::string& name = grad.def->inputs[s].name;
    if (grad.inputs[s].empty()) continue;
    if (!same_slot(forward.def->inputs, forward.inputs, name, grad.inputs[s]) ||
        !same_slot(forward.def->outputs, forward.outputs, name, grad.inputs[s]))
      return false;
  }
  return true;
}

void fuse_backward(Graph& g, Node grad, const ActFusion& fusion) {
  if (!grad->attr<std::string>("act").empty()) return;
  const std::string dy = grad->in("dout").front();
  const Node act_grad = g.producer(dy);
  if (act_grad == g.end() || !g.only_read_by(dy, grad)) return;
  const auto act = std::find_if(fusion.acts.begin(), fusion.acts.end(), [&](const std::string& a) {
    return act_grad->type() == a + "_grad";
  });
  if (act == fusion.acts.end() || act_grad->def->inputs.front().name != "out") return;

  const ir::Names dout = act_grad->in("dout");
  const Node forward = g.producer(act_grad->in("out").front());
  if (forward == g.end() || forward->type() != fusion.op ||
      forward->attr<std::string>("act") != *act || !is_grad_of(*grad, *forward))
    return;
  if (!g.unchanged(dout.front(), act_grad, grad)) return;

  g.erase(act_grad);
  g.set_inputs(grad, "dout", dout);
  g.set_attr(grad, "act", *act);
}

}  // namespace

void fuse_activation(Graph& g, const ActFusion& fusion) {
  for (const Node op : g.ops(fusion.op)) fuse_forward(g, op, fusion);
  if (fusion.grad.empty()) return;
  for (const Node grad : g.ops(fusion.grad)) fuse_backward(g, grad, fusion);
}

}  // namespace fleetx::passes
