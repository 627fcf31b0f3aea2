// Registers the op, the kernel and the server's rule of each optimizer in fleetx/optimizers/. CMake
// makes one source per file there, which includes this header and then the file.
#pragma once

#include "fleetx/ops/lib/optimizer.h"
#include "fleetx/ops/lib/server_rule.h"
#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::ops {

template <class Rule>
std::unique_ptr<kernel::Kernel> make_update(kernel::Prepare& p) {
  using Options = typename Rule::Options;
  const Options o = optim::declared<Rule>().from_op(p.op().attrs);
  const auto use = [&]<class Formula>(std::type_identity<Formula>) {
    return std::unique_ptr<kernel::Kernel>(std::make_unique<UpdateKernel<Formula>>(p, o));
  };
  if constexpr (requires { Rule::choose(o, use); }) {
    return Rule::choose(o, use);
  } else {
    return use(std::type_identity<Rule>{});
  }
}

template <class Rule>
struct RegisterOptimizer {
  RegisterOptimizer() : op(optimizer_op(optim::declared<Rule>()).kernel(make_update<Rule>)) {
    optim::register_optimizer(optim::declared<Rule>());
    register_update_rule(optim::declared<Rule>().op, make_server_rule<Rule>);
  }
  ir::RegisterOp op;
};

}  // namespace fleetx::ops

#undef FLEETX_REGISTER_OPTIMIZER
#define FLEETX_REGISTER_OPTIMIZER(Name) \
  static const ::fleetx::ops::RegisterOptimizer<::fleetx::optim::Name##Rule> register_##Name;
