// sync_batch_norm: the batch of a batch norm is that of all workers together, so that N workers
// with B/N samples each compute what one worker computes with B.
//
//   before                                      after
//     y, m, v, sm, si = batch_norm(...)           y, m, v, sm, si = batch_norm(...) {group="dp"}
//     dx, ds, db = batch_norm_grad(...)           dx, ds, db = batch_norm_grad(...) {group="dp"}
//
// Moves two numbers per channel, twice per layer and step; the workers wait for each other there.
#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/data_parallel.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {
namespace {

// Whether it computes statistics of the batch.
bool takes_statistics(const ir::Op& op) {
  if (op.type() == "batch_norm")
    return !op.attr<bool>("is_test") && !op.attr<bool>("use_global_stats");
  return op.type() == "batch_norm_grad" && !op.attr<bool>("use_global_stats");
}

class SyncBatchNorm final : public Strategy {
 public:
  std::string_view name() const override { return "sync_batch_norm"; }
  Traits traits() const override {
    return {.axes = {kDataAxis},
            .after = {"recompute"},
            .needs = {{"data_parallel", "the statistics are those of its workers"}}};
  }

  void apply(ir::Program& main, ir::Program&, const StrategyContext&) const override {
    ir::Rewriter rw(main);
    for (auto op = rw.begin(); op != rw.end(); ++op)
      if (takes_statistics(*op)) rw.set_attr(op, "group", kDataAxis);
  }

  void check(const ir::Program& main, const StrategyContext&) const override {
    for (const ir::Op& op : main.ops())
      FLEETX_CHECK(!takes_statistics(op) || op.attr<std::string>("group") == kDataAxis,
                   ir::describe(op), "takes the statistics of one worker only");
  }
};

FLEETX_STRATEGY(sync_batch_norm, SyncBatchNorm);

}  // namespace
}  // namespace fleetx::strategies
