// fuse_add_relu: the addition at the end of a residual block applies the relu that follows it.
//
//   before                              after
//     y = elementwise_add(a, b)           out = elementwise_add(a, b) {act="relu"}
//     out = relu(y)
//
// Same shapes only. The backward needs no change: relu_grad reads out and dout, the addition's
// gradient is dy itself.
#include "fleetx/passes/activation.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {

void fuse_add_relu(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  fuse_activation(g, {.op = "elementwise_add",
                      .acts = {"relu"},
                      .accepts = [](const ir::Program& p, const ir::Op& op) {
                        return p.var(op.in("x").front()).type == p.var(op.in("y").front()).type;
                      }});
  g.drop_orphans();
}

}  // namespace fleetx::passes
