#include "fleetx/predict/op_time.h"

#include <algorithm>
#include <cmath>

#include "fleetx/predict/samples.h"

namespace fleetx::predict {
namespace {

bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

struct Work {
  const std::string& op;
  std::string_view kernel;
  DType dtype;
  double flops, bytes;
};

// All cores of a host, for work that nobody has measured.
double by_rates(const Machine& m, DType dtype, double flops, double bytes) {
  return std::max(flops / (is_half(dtype) ? m.half_flops : m.f32_flops), bytes / m.memory_rate);
}

double distance(const OpSample& s, const Work& w) {
  const double f = w.flops > 0 ? std::log(w.flops / s.flops) : 0;
  const double b = s.bytes > 0 && w.bytes > 0 ? std::log(w.bytes / s.bytes) : 0;
  return f * f + b * b;
}

// The measured op of this kind whose shape is nearest, that of flops and bytes alike. Another
// implementation tells less than any distance: Winograd's arithmetic is not that of a direct
// convolution.
const OpSample* nearest(const Machine& m, const Work& w, int cores) {
  const OpSample* best = nullptr;
  bool best_same = false;
  double least = 0;
  for (const OpSample& s : m.ops) {
    if (s.cores != cores || s.op != w.op || s.dtype != w.dtype || (s.flops > 0) != (w.flops > 0))
      continue;
    const bool same = s.kernel.empty() || s.kernel == w.kernel;
    if (best_same && !same) continue;
    const double far = distance(s, w);
    if (best != nullptr && same == best_same && far >= least) continue;
    best = &s;
    best_same = same;
    least = far;
  }
  return best;
}

double scaled(const Machine& m, const OpSample& s, const Work& w) {
  const double expected = by_rates(m, w.dtype, s.flops, s.bytes);
  const double ratio = expected > 0 ? by_rates(m, w.dtype, w.flops, w.bytes) / expected : 1;
  return m.op_s + std::max(0.0, s.seconds - m.op_s) * ratio;
}

}  // namespace

double op_seconds(const runtime::PlannedProgram& plan, const runtime::Step& step, const Machine& m,
                  int ranks_per_host) {
  const Work w{step.label, step.kernel->implementation(), dtype_of(plan, step), step.cost.flops,
               step.cost.bytes};
  const double all = m.cores;
  const double own = m.cores_per_rank > 0 ? m.cores_per_rank : all / ranks_per_host;
  // More ranks than cores: each waits while others compute.
  const double crowded = std::max(1.0, ranks_per_host * own / all) * std::max(1.0, 1 / own);
  const OpSample* by_all = nearest(m, w, kAllCores);
  const OpSample* by_one = all > 1 && own < all ? nearest(m, w, 1) : nullptr;
  if (by_one != nullptr) {
    const double one = scaled(m, *by_one, w);
    if (own <= 1 || by_all == nullptr) return one * crowded / std::max(1.0, own);
    // Between one core and all: as if every doubling helped alike.
    const double share = std::log(own) / std::log(all);
    return std::pow(one, 1 - share) * std::pow(scaled(m, *by_all, w), share) * crowded;
  }
  const double less = all / std::max(own, 1.0) * crowded;
  if (by_all == nullptr) return m.op_s + by_rates(m, w.dtype, w.flops, w.bytes) * less;
  return m.op_s + (scaled(m, *by_all, w) - m.op_s) * less;
}

}  // namespace fleetx::predict
