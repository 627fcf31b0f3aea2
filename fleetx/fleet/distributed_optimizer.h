// An optimizer whose program is changed for the workers of a job, as a DistributedStrategy says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fleetx/base/mesh.h"
#include "fleetx/fleet/distributed_strategy.h"
#include "fleetx/fleet/server_config.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/passes/pass.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::fleet {

// The mesh that hybrid_configs ask for. Degrees that do not multiply to the number of workers are
// kInvalidArgument.
Mesh mesh_of(const DistributedStrategy& strategy, int workers, int rank);

// The strategies that a DistributedStrategy asks for, in a job of this mesh. One that is not built
// yet, and a setting without effect, is an error: nothing is ignored in silence. (a_sync is about
// servers: scripts that set it also run without.)
std::vector<strategies::Request> requests_of(const DistributedStrategy& strategy, const Mesh& mesh);

// In which part of all steps guarded ones run: with gradient_merge or localsgd, in one of k_steps.
double guarded_share(const DistributedStrategy& strategy);

class DistributedOptimizer {
 public:
  // Makes the communicators of these groups; called by minimize once it knows which the strategies
  // need. Null: only a program is made, nobody computes together.
  using Connect = std::function<void(const Mesh&, const std::vector<std::string>& groups)>;
  // Gives the text of the first worker to all of them: the strategies that `auto` chose there.
  using Agree = std::function<std::string(const std::string& text)>;
  // Of a job with parameter servers: `keep` is called with the programs that have their updates,
  // which the update strategies then take away.
  struct OnServers {
    ServerConfig config;
    std::function<void(const ir::Program& main, const ir::Program& startup)> keep;
  };

  DistributedOptimizer(std::shared_ptr<optim::Optimizer> optimizer, DistributedStrategy strategy,
                       Mesh mesh, Connect connect = nullptr, std::optional<OnServers> servers = {},
                       Agree agree = nullptr);

  // Forward strategies, backward, gradient strategies, updates, update strategies. On an error the
  // programs are as they were.
  std::vector<optim::ParamGrad> minimize(
      const ir::Var& loss, const autograd::BackwardOptions& options = {},
      std::source_location where = std::source_location::current());

  optim::Optimizer& inner() { return *optimizer_; }
  // With auto, after minimize: what was chosen, and the mesh that it needs.
  const DistributedStrategy& strategy() const { return strategy_; }
  const Mesh& mesh() const { return mesh_; }
  const std::vector<passes::Report>& applied() const { return applied_; }  // after minimize

 private:
  std::map<int, ir::Program> other_stages(const ir::Var& loss,
                                          const std::vector<strategies::Request>& requests,
                                          const autograd::BackwardOptions& options,
                                          std::source_location where);
  ir::Program program_of(const Mesh& mesh, const std::vector<strategies::Request>& requests,
                         const ir::Var& loss, const autograd::BackwardOptions& options,
                         std::source_location where);
  void choose(const ir::Var& loss, const autograd::BackwardOptions& options,
              std::source_location where);

  std::shared_ptr<optim::Optimizer> optimizer_;
  DistributedStrategy strategy_;
  Mesh mesh_;
  Connect connect_;
  std::optional<OnServers> servers_;
  Agree agree_;
  std::vector<passes::Report> applied_;
};

}  // namespace fleetx::fleet
