#include "fleetx/predict/samples.h"

#include <algorithm>
#include <cmath>

namespace fleetx::predict {
namespace {

int size_class(double work) {
  return work > 0 ? static_cast<int>(std::lround(2 * std::log2(work))) : -1;
}

}  // namespace

DType dtype_of(const runtime::PlannedProgram& plan, const runtime::Step& step) {
  for (const auto* values : {&step.inputs, &step.outputs})
    for (const int v : *values)
      if (is_float(plan.value(v).desc.dtype)) return plan.value(v).desc.dtype;
  return DType::kF32;
}

void Samples::add(const runtime::PlannedProgram& plan, const runtime::Step& step, double seconds) {
  const ir::Cost& cost = step.cost;
  if (cost.communication.kind != ir::CommKind::kNone || step.ticket != runtime::kNoTicket) return;
  if (cost.flops <= 0 && cost.bytes <= 0) return;
  Class& c = classes_[{step.label, std::string(step.kernel->implementation()), dtype_of(plan, step),
                       size_class(cost.flops), size_class(cost.bytes)}];
  c.flops += cost.flops;
  c.bytes += cost.bytes;
  c.seconds.push_back(seconds);
}

std::vector<OpSample> Samples::take() const {
  std::vector<OpSample> out;
  for (const auto& [key, c] : classes_) {
    std::vector<double> seconds = c.seconds;
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    const auto n = static_cast<double>(seconds.size());
    const auto& [op, kernel, dtype, flops, bytes] = key;
    // The file has a nanosecond for its least.
    out.push_back({.op = op,
                   .dtype = dtype,
                   .flops = c.flops / n,
                   .bytes = c.bytes / n,
                   .seconds = std::max(*middle, 1e-9),
                   .kernel = kernel,
                   .cores = cores_});
  }
  return out;
}

}  // namespace fleetx::predict
