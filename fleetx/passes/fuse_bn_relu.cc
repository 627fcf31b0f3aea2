// fuse_bn_relu: batch_norm applies the relu that follows it while it writes its output, and
// batch_norm_grad the gradient of it while it reads: one sweep over the activations less in each
// direction, and one buffer less.
//
//   before
//     y, m, v, sm, si = batch_norm(x, s, b, m, v)
//     out = relu(y)
//     dy = relu_grad(out, dout)
//     dx, ds, db = batch_norm_grad(x, s, b, sm, si, dy)
//   after
//     out, m, v, sm, si = batch_norm(x, s, b, m, v) {act="relu"}
//     dx, ds, db = batch_norm_grad(x, s, b, sm, si, dout) {act="relu"}
//
// Not where y has another reader, or is fetched. Where only the gradient of y has another reader,
// the backward ops stay.
#include "fleetx/passes/activation.h"
#include "fleetx/passes/passes.h"

namespace fleetx::passes {

void fuse_bn_relu(ir::Program& program, const Options& options) {
  Graph g(program, options.keep);
  fuse_activation(g, {.op = "batch_norm", .acts = {"relu"}, .grad = "batch_norm_grad"});
  g.drop_orphans();
}

}  // namespace fleetx::passes
