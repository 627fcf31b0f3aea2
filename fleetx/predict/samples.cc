#include "fleetx/predict/samples.h"

#include <algorithm>
#include <cmath>

namespace fleetx::predict {
namespace {

int size_class(double work) {
  return work > 0 ? static_cast<int>(std::lround(4 * std::log2(work))) : -1;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
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
  Measured& m = c[{plan.program.id(), &step - plan.steps.data()}];
  m.flops = cost.flops;
  m.bytes = cost.bytes;
  m.seconds.push_back(seconds);
}

std::vector<OpSample> Samples::take() const {
  std::vector<OpSample> out;
  for (const auto& [key, ops] : classes_) {
    const auto& [op, kernel, dtype, flops, bytes] = key;
    OpSample sum{.op = op, .dtype = dtype, .kernel = kernel, .cores = cores_};
    const auto n = static_cast<double>(ops.size());
    for (const auto& [place, m] : ops) {
      sum.flops += m.flops / n;
      sum.bytes += m.bytes / n;
      sum.seconds += median(m.seconds) / n;
    }
    sum.seconds = std::max(sum.seconds, 1e-9);  // the file has no less
    out.push_back(std::move(sum));
  }
  return out;
}

}  // namespace fleetx::predict
