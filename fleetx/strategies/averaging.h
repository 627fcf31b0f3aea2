// How gradients are averaged over the workers; shared by the strategies that do so.
#pragma once

#include <string>
#include <vector>

#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/buckets.h"
#include "fleetx/strategies/strategy.h"

namespace fleetx::strategies {

// Options on which gradients travel together: fuse, fuse_size_in_MB, fuse_count.
ir::Attrs default_fuse_options();
ir::Attrs fuse_options(const Settings& settings);
void check_fuse_options(std::string_view strategy, const ir::Attrs& options);

// The gradient of a parameter that the workers share.
Gradient gradient_of(const ir::Program& main, const ir::Training::Parameter& p, DType dtype);
// Buckets of them, as the options say.
std::vector<std::vector<Gradient>> buckets_of(const std::vector<Gradient>& gradients,
                                              const ir::Attrs& options);

// The place behind the last of the ops that write or read one of these, or make the guard; begin()
// where none does.
ir::Rewriter::Position behind(ir::Rewriter& rw, const ir::Names& vars,
                              const std::string& guard = "");

ir::Names names_of(const std::vector<Gradient>& bucket);

// The guard of the collectives: whether gradients are applied in this step, where all workers
// know it without asking. Where each worker finds out by itself, the gradients are averaged in
// every step, and applied where all workers are ready.
std::string agree_on_ready(ir::Rewriter& rw);

// Variables of one dtype become their averages over the workers, in place: they are started
// together as soon as all of them are there, and waited for at the end of backward.
void average(ir::Rewriter& rw, const ir::Names& names, const std::string& guard);

}  // namespace fleetx::strategies
