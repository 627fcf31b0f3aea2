#include "fleetx/fleet/distributed_optimizer.h"

#include <algorithm>

#include "fleetx/base/log.h"
#include "fleetx/base/log_quiet.h"
#include "fleetx/fleet/auto_strategy.h"
#include "fleetx/fleet/describe_job.h"
#include "fleetx/ir/divided.h"
#include "fleetx/ir/verifier.h"
#include "fleetx/runtime/executor.h"
#include "fleetx/strategies/parameter_server.h"
#include "fleetx/strategies/pipeline.h"

namespace fleetx::fleet {
namespace {

void say_what_was_fused(const ir::Program& main) {
  size_t gradients = 0, calls = 0;
  for (const ir::Op& op : main.ops()) {
    if (op.type() != "all_reduce_start") continue;
    gradients += op.in("xs").size();
    ++calls;
  }
  if (calls == 0) return;  // pipelines and sharding may have none
  log::warning("fuse_all_reduce", "Find all_reduce operators: ", gradients,
               ". To make the speed faster, some all_reduce ops are fused during training, after "
               "fusion, the number of all_reduce ops is ",
               calls, ".");
}

// A DistributedStrategy as strategies ask it.
class ByName final : public strategies::Settings {
 public:
  explicit ByName(const DistributedStrategy& strategy) : strategy_(strategy) {}

  ir::Attr get(std::string_view field) const override {
    const size_t dot = field.find('.');
    if (dot == std::string_view::npos) return strategy_.get(field);
    const ir::Attrs group = strategy_.get_configs(field.substr(0, dot));
    const auto it = group.find(field.substr(dot + 1));
    FLEETX_CHECK(it != group.end(), "DistributedStrategy has no setting '", field, "'");
    return it->second;
  }

 private:
  const DistributedStrategy& strategy_;
};

// The stages that the network names, where the degrees do not say how many there are. One worker
// alone computes all of them.
void follow_guards(const ir::Program& main, DistributedStrategy& strategy, Mesh& mesh) {
  const int stages = strategies::stages_in(main), workers = mesh.world();
  if (!strategy.pipeline || strategy.hybrid_configs.pp_degree > 1 || stages <= 1 || workers == 1)
    return;
  check_arg(workers % stages == 0, "pipeline: device_guards name ", stages,
            " stages, but the job has ", workers, " workers, of which ", stages,
            " make a pipeline; start a multiple of ", stages, " workers, or one");
  strategy.hybrid_configs.pp_degree = stages;
  mesh = mesh_of(strategy, workers, mesh.rank());
}

// Without servers: whether this process has tables to keep, and no strategy that servers refuse.
bool keeps_tables(const ir::Program& main, const std::vector<strategies::Request>& requests) {
  const std::set<std::string> others = strategies::strategies_without_tables();
  const bool fits = std::ranges::none_of(
      requests, [&](const strategies::Request& r) { return others.contains(r.name); });
  return fits && std::ranges::any_of(main.ops(), [&](const ir::Op& op) {
           return op.type() == "embedding" && main.var(op.in("w").front()).is_distributed;
         });
}

// Between how many ranks the program has split its layers itself; 1: it has not.
int split_of(const ir::Program& main) {
  for (const ir::Op& op : main.ops())
    if (op.def->find_attr("group") != nullptr && op.def->find_attr("ranks") != nullptr &&
        op.attr<std::string>("group") == ir::kModelAxis)
      return static_cast<int>(op.attr<int64_t>("ranks"));
  return 1;
}

}  // namespace

Mesh mesh_of(const DistributedStrategy& s, int workers, int rank) {
  const HybridConfigs& h = s.hybrid_configs;
  return fleetx::mesh_of(
      {.dp = h.dp_degree, .sharding = h.sharding_degree, .pp = h.pp_degree, .mp = h.mp_degree},
      workers, rank);
}

std::vector<strategies::Request> requests_of(const DistributedStrategy& s, const Mesh& mesh) {
  check_values(s);
  check_unused_configs(s);
  std::vector<std::string> built = strategies::strategy_names();
  built.emplace_back("a_sync");
  check_built(s, built);
  return strategies::requests_of(ByName(s), mesh);
}

double guarded_share(const DistributedStrategy& s) {
  int steps = 1;
  if (s.gradient_merge) steps = std::max(steps, s.gradient_merge_configs.k_steps);
  if (s.localsgd) steps = std::max(steps, s.localsgd_configs.k_steps);
  return 1.0 / steps;
}

DistributedOptimizer::DistributedOptimizer(std::shared_ptr<optim::Optimizer> optimizer,
                                           DistributedStrategy strategy, Mesh mesh, Connect connect,
                                           std::optional<OnServers> servers, Agree agree)
    : optimizer_(std::move(optimizer)),
      strategy_(std::move(strategy)),
      mesh_(std::move(mesh)),
      connect_(std::move(connect)),
      servers_(std::move(servers)),
      agree_(std::move(agree)) {
  check_arg(optimizer_ != nullptr, "distributed_optimizer: there is no optimizer");
}

// The first worker looks for the best; all take its choice.
void DistributedOptimizer::choose(const ir::Var& loss, const autograd::BackwardOptions& options,
                                  std::source_location where) {
  check_alone(strategy_);
  check_arg(!servers_ || servers_->config.mode == "alone",
            "DistributedStrategy.auto chooses among strategies of collective jobs; this one has "
            "parameter servers");
  const AutoConfigs configs = strategy_.auto_configs;
  std::string text;
  if (mesh_.rank() == 0 || !agree_) {
    const Predictor predict(configs);
    // On copies, with a builder of their own: names that are made here must not be missing later.
    const auto try_one = [&](const DistributedStrategy& candidate, const Mesh& mesh) {
      const log::Quiet quiet;
      const ir::Unverified tried_only;
      const auto requests = requests_of(candidate, mesh);
      std::vector<ir::Program> stages;
      for (const int rank : mesh.group("pp"))
        stages.push_back(program_of(Mesh(mesh.axes(), rank), requests, loss, options, where));
      return predict(stages, loss.name(), candidate, mesh);
    };
    const AutoChoice choice =
        choose_strategy(strategy_, mesh_, try_one, split_of(loss.builder().main()));
    log::info("auto", choice.report);
    text = choice.strategy.to_text();
    if (!configs.save_to.empty() && mesh_.rank() == 0) choice.strategy.save_text(configs.save_to);
  }
  if (agree_) text = agree_(text);
  strategy_ = {};
  strategy_.merge_text(text, "the choice of auto");
  mesh_ = mesh_of(strategy_, mesh_.world(), mesh_.rank());
}

// As minimize would make it for a rank, of copies.
ir::Program DistributedOptimizer::program_of(const Mesh& mesh,
                                             const std::vector<strategies::Request>& requests,
                                             const ir::Var& loss,
                                             const autograd::BackwardOptions& options,
                                             std::source_location where) {
  const log::Quiet quiet;
  ir::Program main = loss.builder().main(), startup = loss.builder().startup();
  ir::Builder b(main, startup);
  strategies::ResolvedStrategies resolved(requests, {.mesh = mesh});
  strategies::minimize(
      {main, startup}, resolved, [&] { (void)optimizer_->backward(b.var(loss.name()), options); },
      [&] { optimizer_->apply_gradients(autograd::trained(b), where); });
  return main;
}

// The programs of the other stages of this worker's pipeline, by rank.
std::map<int, ir::Program> DistributedOptimizer::other_stages(
    const ir::Var& loss, const std::vector<strategies::Request>& requests,
    const autograd::BackwardOptions& options, std::source_location where) {
  std::map<int, ir::Program> all;
  for (const int rank : mesh_.has("pp") ? mesh_.group("pp") : std::vector<int>{}) {
    if (rank == mesh_.rank()) continue;
    all.emplace(rank, program_of(Mesh(mesh_.axes(), rank), requests, loss, options, where));
  }
  return all;
}

std::vector<optim::ParamGrad> DistributedOptimizer::minimize(
    const ir::Var& loss, const autograd::BackwardOptions& options, std::source_location where) {
  const runtime::PlanOptions plan = runtime::ExecutorOptions::from_env().plan;
  if (strategy_.auto_) choose(loss, options, where);
  follow_guards(loss.builder().main(), strategy_, mesh_);
  std::vector<strategies::Request> requests = requests_of(strategy_, mesh_);
  ir::Builder& b = loss.builder();
  const bool on_servers =
      servers_ && (servers_->config.mode != "alone" || keeps_tables(b.main(), requests));
  if (on_servers)
    requests.push_back({"parameter_server",
                        {{"mode", servers_->config.mode}, {"k_steps", servers_->config.k_steps}}});
  strategies::ResolvedStrategies resolved(
      requests, {.mesh = mesh_, .dump_dir = plan.dump_dir, .skip = plan.skip});
  if (connect_) connect_(mesh_, resolved.groups());
  std::map<int, ir::Program> others;
  if (is_describing()) others = other_stages(loss, requests, options, where);
  std::vector<optim::ParamGrad> gradients;
  strategies::minimize(
      {b.main(), b.startup()}, resolved, [&] { (void)optimizer_->backward(loss, options); },
      [&] {
        gradients = autograd::trained(b);
        optimizer_->apply_gradients(gradients, where);
        if (on_servers) servers_->keep(b.main(), b.startup());
      });
  // Gradients of what other workers have are gone.
  std::erase_if(gradients, [&](const optim::ParamGrad& pair) {
    return b.main().find(pair.grad.name()) == nullptr;
  });
  applied_ = resolved.applied();
  note_described(mesh_, strategy_, std::move(others));
  if (mesh_.rank() == 0 && !requests.empty())
    log::info("strategy",
              "strategies, in the order in which they were applied:", resolved.to_table());
  if (mesh_.world() > 1 && mesh_.rank() == 0 && strategy_.fuse_all_reduce_ops)
    say_what_was_fused(b.main());
  return gradients;
}

}  // namespace fleetx::fleet
