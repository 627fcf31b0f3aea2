// sync_batch_norm: the batch of a batch norm is that of all workers together, so that N workers
// with B/N samples each compute what one worker computes with B.
//
//   before                                      after
//     y, m, v, sm, si = batch_norm(...)           y, m, v, sm, si = batch_norm(...) {group="dp"}
//
// Acts on forward: the gradient op takes over the group. Moves two numbers per channel, twice per
// layer and step; the workers wait for each other there.
#include "fleetx/strategies/sync_batch_norm.h"

#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

// Whether it computes statistics of the batch, or their gradient.
bool takes_statistics(const ir::Op& op) {
  const bool forward = op.type() == "batch_norm" && !op.attr<bool>("is_test");
  return (forward || op.type() == "batch_norm_grad") && !op.attr<bool>("use_global_stats");
}

class SyncBatchNorm final : public Strategy {
 public:
  std::string_view name() const override { return "sync_batch_norm"; }
  Traits traits() const override {
    return {.acts = {{Phase::kForward}},
            .groups = {kDataAxis},
            .needs = {{"data_parallel", "the statistics are those of its workers"}}};
  }

  // One worker has the whole batch anyway.
  bool acts_in(const Mesh& mesh) const override { return mesh.size(kDataAxis) > 1; }

  std::optional<ir::Attrs> requested(const Settings& s, const Mesh&) const override {
    if (!s.on("sync_batch_norm")) return std::nullopt;
    return ir::Attrs{};
  }

  void on_forward(Programs& programs, const StrategyContext&) const override {
    take_statistics_over_all_workers(programs.main);
  }

  void check(Phase, const ir::Program& main, const StrategyContext&) const override {
    for (const ir::Op& op : main.ops())
      FLEETX_CHECK(!takes_statistics(op) || op.attr<std::string>("group") == kDataAxis,
                   ir::describe(op), "takes the statistics of one worker only");
  }
};

FLEETX_STRATEGY(sync_batch_norm, SyncBatchNorm);

}  // namespace

void take_statistics_over_all_workers(ir::Program& main) {
  ir::Rewriter rw(main);
  for (auto op = rw.begin(); op != rw.end(); ++op)
    if (takes_statistics(*op)) rw.set_attr(op, "group", kDataAxis);
}

}  // namespace fleetx::strategies
