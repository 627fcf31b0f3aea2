// fuse_bias_act: the products of a network add their bias and apply their activation while the
// result is in cache.
//
// 1. matmul + elementwise_add of a vector becomes fc:
//      y = matmul(x, w)                  z = fc(x, w, b) {num_flatten_dims=2}
//      z = elementwise_add(y, b)
// 2. fc + activation, and conv2d + relu:
//      z = fc(x, w, b)                   out = fc(x, w, b) {act="tanh"}
//      out = tanh(z)
//
// Backward stays as it is: it reads x, w and gradients, never y or z. The gradient of the
// activation is left an op of its own, because that can work in the memory of dout; inside fc_grad
// or conv2d_grad it needs a buffer (four 3x3 convolutions with relu: 96 instead of 72 MiB of
// activations). The gradient of gelu reads z, which keeps z alive: gelu is fused where there is no
// backward.
#include "fleetx/passes/activation.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {
namespace {

using Node = Graph::Node;

void matmul_to_fc(Graph& g, Node matmul) {
  const ir::Program& p = g.program();
  const ir::Names x = matmul->in("x"), w = matmul->in("y");
  const int rank = p.var(x.front()).type.shape.rank();
  if (rank < 2 || p.var(w.front()).type.shape.rank() != 2) return;
  if (p.var(x.front()).type.dtype == f64) return;  // fc computes in f32
  if (matmul->attr<bool>("transpose_x") || matmul->attr<bool>("transpose_y") ||
      matmul->attr<double>("alpha") != 1.0)
    return;

  const ir::Names y = matmul->out("out");
  const Node add = g.only_reader(y.front());
  if (add == g.end() || add->type() != "elementwise_add" || add->role != matmul->role) return;
  const ir::Names bias = add->in("y");
  const int axis = add->attr<int>("axis");
  if (add->in("x") != y || (axis != -1 && axis != rank - 1)) return;
  const ir::TensorType& type = p.var(bias.front()).type;
  if (type != ir::TensorType{p.var(w.front()).type.dtype, {p.var(w.front()).type.shape[1]}}) return;
  if (!g.unchanged(x.front(), matmul, add) || !g.unchanged(w.front(), matmul, add)) return;

  g.replace(add, {.type = "fc",
                  .inputs = {{"x", x}, {"w", w}, {"bias", bias}},
                  .outputs = {{"out", add->out("out")}},
                  .attrs = {{"num_flatten_dims", rank - 1}, {"act", add->attrs.at("act")}},
                  .role = add->role,
                  .name = add->name,
                  .loc = add->loc});
  g.erase(matmul);
}

}  // namespace

void fuse_bias_act(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  for (const Node matmul : g.ops("matmul")) matmul_to_fc(g, matmul);
  fuse_activation(g, {.op = "fc", .acts = {"gelu", "relu", "sigmoid", "tanh"}});
  fuse_activation(g, {.op = "conv2d", .acts = {"relu"}});
  g.drop_orphans();
}

}  // namespace fleetx::passes
