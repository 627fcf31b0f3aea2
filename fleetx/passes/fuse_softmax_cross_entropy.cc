// fuse_softmax_cross_entropy: softmax followed by cross_entropy becomes one op that works on
// logits, which is exact where a probability underflows, and whose gradient is softmax - label
// instead of a quotient. The probabilities stay available as its output `softmax` for other readers
// (accuracy).
//
//   before                                          after
//     p = softmax(x)                                  l, p = softmax_cross_entropy(x, label)
//     l = cross_entropy(p, label)
//     dp = cross_entropy_grad(p, label, dl)
//     dx = softmax_grad(p, dp)                        dx = softmax_cross_entropy_grad(p, label, dl)
//
// Both axes must be the same. The forward pair stands where softmax stood, or, where the label is
// not computed yet, where cross_entropy stood. A backward pair whose dp has other readers or other
// contributions stays as it is.
#include <algorithm>

#include "fleetx/passes/graph.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

using Node = Graph::Node;

bool same_axis(const Graph& g, const std::string& var, const ir::Op& a, const ir::Op& b) {
  const int rank = g.program().var(var).type.shape.rank();
  const auto axis = [rank](const ir::Op& op) {
    const int axis = op.attr<int>("axis");
    return axis < 0 ? axis + rank : axis;
  };
  return axis(a) == axis(b);
}

ir::Attrs loss_attrs(const ir::Op& op) {
  ir::Attrs attrs;
  for (const char* name : {"axis", "ignore_index", "soft_label"})
    attrs.emplace(name, op.attrs.at(name));
  return attrs;
}

void fuse_forward(Graph& g, Node softmax) {
  const ir::Names p = softmax->out("out");
  if (g.producer(p.front()) != softmax) return;
  const auto& readers = g.readers(p.front());
  const auto found = std::find_if(readers.begin(), readers.end(), [&](Node r) {
    return r->type() == "cross_entropy" && r->in("x") == p && r->role == softmax->role &&
           r->guard.empty() && same_axis(g, p.front(), *softmax, *r) &&
           g.producer(r->out("out").front()) == r;
  });
  if (found == readers.end()) return;
  const Node loss = *found;
  const bool early = g.unchanged(loss->in("label").front(), softmax, loss);
  const bool late = readers.front() == loss && g.unchanged(softmax->in("x").front(), softmax, loss);
  if (!early && !late) return;

  const ir::Rewriter::NewOp fused{.type = "softmax_cross_entropy",
                                  .inputs = {{"x", softmax->in("x")}, {"label", loss->in("label")}},
                                  .outputs = {{"out", loss->out("out")}, {"softmax", p}},
                                  .attrs = loss_attrs(*loss),
                                  .role = loss->role,
                                  .name = loss->name,
                                  .loc = loss->loc};
  g.replace(early ? softmax : loss, fused);
  g.erase(early ? loss : softmax);
}

void fuse_backward(Graph& g, Node softmax_grad) {
  const std::string dp = softmax_grad->in("dout").front();
  const Node loss_grad = g.producer(dp);
  if (loss_grad == g.end() || loss_grad->type() != "cross_entropy_grad" ||
      !g.only_read_by(dp, softmax_grad))
    return;
  const ir::Names p = softmax_grad->in("out");
  if (loss_grad->in("x") != p || !same_axis(g, p.front(), *softmax_grad, *loss_grad)) return;
  for (const char* slot : {"label", "dout"})
    if (!g.unchanged(loss_grad->in(slot).front(), loss_grad, softmax_grad)) return;

  const ir::Rewriter::NewOp fused{.type = "softmax_cross_entropy_grad",
                                  .inputs = {{"softmax", p},
                                             {"label", loss_grad->in("label")},
                                             {"dout", loss_grad->in("dout")}},
                                  .outputs = {{"dx", softmax_grad->out("dx")}},
                                  .attrs = loss_attrs(*loss_grad),
                                  .role = softmax_grad->role,
                                  .name = loss_grad->name,
                                  .loc = loss_grad->loc};
  g.replace(softmax_grad, fused);
  g.erase(loss_grad);
}

}  // namespace

void fuse_softmax_cross_entropy(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  for (const Node softmax : g.ops("softmax")) fuse_forward(g, softmax);
  for (const Node softmax_grad : g.ops("softmax_grad")) fuse_backward(g, softmax_grad);
  g.drop_orphans();
}

}  // namespace fleetx::passes
