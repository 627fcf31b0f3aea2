#include "fleetx/fleet/distributed_optimizer.h"

#include "fleetx/base/log.h"
#include "fleetx/runtime/executor.h"

namespace fleetx::fleet {
namespace {

void say_what_was_fused(const ir::Program& main) {
  size_t gradients = 0, calls = 0;
  for (const ir::Op& op : main.ops()) {
    if (op.type() != "all_reduce_start") continue;
    gradients += op.in("xs").size();
    ++calls;
  }
  log::warning("fuse_all_reduce", "Find all_reduce operators: ", gradients,
               ". To make the speed faster, some all_reduce ops are fused during training, after "
               "fusion, the number of all_reduce ops is ",
               calls, ".");
}

}  // namespace

std::vector<strategies::Request> requests_of(const DistributedStrategy& s, int workers) {
  check_values(s);
  check_unused_configs(s);
  check_built(s, strategies::strategy_names(), workers);
  std::vector<strategies::Request> requests;
  for (const std::string& name : s.enabled_strategies()) {
    if (name == "recompute") {
      check_arg(
          !s.recompute_configs.enable_offload && s.recompute_configs.checkpoint_shape.empty(),
          "recompute_configs: enable_offload moves memory of a device to the host; here there "
          "is only the host. Leave it off");
      requests.push_back({name, {{"checkpoints", s.recompute_configs.checkpoints}}});
    } else if (name != "sync_batch_norm" || workers > 1) {
      requests.push_back({name});
    }
  }
  if (workers > 1)
    requests.push_back({"data_parallel",
                        {{"fuse", s.fuse_all_reduce_ops},
                         {"fuse_size_in_MB", s.fuse_grad_size_in_MB},
                         {"fuse_count", static_cast<int64_t>(s.fuse_grad_size_in_TFLOPS)}}});
  return requests;
}

DistributedOptimizer::DistributedOptimizer(std::shared_ptr<optim::Optimizer> optimizer,
                                           DistributedStrategy strategy, Mesh mesh)
    : optimizer_(std::move(optimizer)), strategy_(std::move(strategy)), mesh_(std::move(mesh)) {
  check_arg(optimizer_ != nullptr, "distributed_optimizer: there is no optimizer");
}

std::vector<optim::ParamGrad> DistributedOptimizer::minimize(
    const ir::Var& loss, const autograd::BackwardOptions& options, std::source_location where) {
  const auto requests = requests_of(strategy_, mesh_.world());
  ir::Builder& b = loss.builder();
  const ir::Program main = b.main(), startup = b.startup();
  try {
    auto gradients = optimizer_->minimize(loss, options, where);
    const runtime::PlanOptions plan = runtime::ExecutorOptions::from_env().plan;
    applied_ =
        strategies::apply_strategies(b.main(), b.startup(), requests,
                                     {.mesh = mesh_, .dump_dir = plan.dump_dir, .skip = plan.skip});
    if (mesh_.world() > 1 && mesh_.rank() == 0 && strategy_.fuse_all_reduce_ops)
      say_what_was_fused(b.main());
    return gradients;
  } catch (...) {
    b.main() = main;
    b.startup() = startup;
    throw;
  }
}

}  // namespace fleetx::fleet
