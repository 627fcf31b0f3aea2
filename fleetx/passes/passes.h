// The local passes, one file each; pass.cc lists them in the order in which they run.
#pragma once

#include "fleetx/ir/program.h"

namespace fleetx::passes {

// `keep` are variables that must stay available although no op reads them.
void dce(ir::Program& program, const ir::Names& keep);
void fuse_softmax_cross_entropy(ir::Program& program, const ir::Names& keep);
void fuse_bn_relu(ir::Program& program, const ir::Names& keep);
void fuse_add_relu(ir::Program& program, const ir::Names& keep);
void fuse_bias_act(ir::Program& program, const ir::Names& keep);
void fuse_optimizer(ir::Program& program, const ir::Names& keep);

}  // namespace fleetx::passes
