#include "fleetx/runtime/check_fits.h"

#include <iomanip>
#include <sstream>

#include "fleetx/base/error.h"

namespace fleetx::runtime {
namespace {

std::string mib(double bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << bytes / (1 << 20) << " MiB";
  return out.str();
}

}  // namespace

void check_fits(const PlannedProgram& plan, const MemoryLimit& limit) {
  const auto needed = static_cast<double>(plan.peak_bytes());
  if (needed <= limit.bytes) return;
  const MemoryByKind m = plan.memory();
  fail(Error::Kind::kInvalidArgument,
       str("the program does not fit into memory: it needs ", mib(needed), " (parameters ",
           mib(static_cast<double>(m.parameters)), ", state ", mib(static_cast<double>(m.state)),
           ", gradients ", mib(static_cast<double>(m.buckets + m.gradients)), ", activations ",
           mib(static_cast<double>(m.activations)), "), ", mib(needed - limit.bytes),
           " more than the ", mib(limit.bytes), " that ",
           limit.by_cgroup ? "the control group of this process has" : "there are",
           ". What would help: strategy.sharding, recompute, amp, a smaller batch, more memory; "
           "strategy.auto looks for what fits"));
}

}  // namespace fleetx::runtime
