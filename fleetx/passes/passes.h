// The local passes, one file each; pass.cc lists them in the order in which they run.
#pragma once

#include "fleetx/passes/pass.h"

namespace fleetx::passes {

void dce(ir::Program& program, const Options& options);
void known_shapes(ir::Program& program, const Options& options);
void fuse_softmax_cross_entropy(ir::Program& program, const Options& options);
void fuse_bn_relu(ir::Program& program, const Options& options);
void fuse_add_relu(ir::Program& program, const Options& options);
void fuse_conv_norm(ir::Program& program, const Options& options);
void fuse_bias_act(ir::Program& program, const Options& options);
void fuse_fc(ir::Program& program, const Options& options);
void narrow_fc_grad(ir::Program& program, const Options& options);
void fuse_elementwise(ir::Program& program, const Options& options);
void fuse_optimizer(ir::Program& program, const Options& options);
void recompute_cheap(ir::Program& program, const Options& options);
void update_early(ir::Program& program, const Options& options);

}  // namespace fleetx::passes
