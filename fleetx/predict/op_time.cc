#include "fleetx/predict/op_time.h"

#include <algorithm>
#include <cmath>
#include <optional>

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

// Of two shapes: how far their arithmetic and their traffic are from each other.
double distance(const OpSample& s, const Work& w) {
  const double f = w.flops > 0 ? std::log(w.flops / s.flops) : 0;
  const double b = s.bytes > 0 && w.bytes > 0 ? std::log(w.bytes / s.bytes) : 0;
  return f * f + b * b;
}

// How much a sample tells about a step; 0: nothing. Another implementation tells less than any
// distance (Winograd's arithmetic is not that of a direct convolution), and another type still
// less.
int likeness(const OpSample& s, const Work& w, int cores) {
  if (s.cores != cores || s.op != w.op || (s.flops > 0) != (w.flops > 0)) return 0;
  if (s.dtype != w.dtype) return 1;
  return s.kernel.empty() || s.kernel == w.kernel ? 3 : 2;
}

// Seconds on so many cores, by the measured ops of this kind that are most alike: each says how
// much longer such work takes than the machine's rates say, and the near ones count most. None: no
// such op was measured.
std::optional<double> by_samples(const Machine& m, const Work& w, int cores) {
  constexpr double kSame = 1e-3;  // nearer shapes are the same
  int most = 0;
  for (const OpSample& s : m.ops) most = std::max(most, likeness(s, w, cores));
  if (most == 0) return {};
  double weights = 0, slower = 0;
  for (const OpSample& s : m.ops) {
    if (likeness(s, w, cores) != most) continue;
    const double expected = by_rates(m, s.dtype, s.flops, s.bytes);
    if (expected <= 0) continue;
    const double far = std::max(kSame, distance(s, w));
    const double weight = 1 / (far * far);
    weights += weight;
    slower += weight * std::max(0.0, s.seconds - m.op_s) / expected;
  }
  return m.op_s + slower / weights * by_rates(m, w.dtype, w.flops, w.bytes);
}

}  // namespace

double cores_of_rank(const Machine& m, int ranks_per_host) {
  return m.cores_per_rank > 0 ? m.cores_per_rank : static_cast<double>(m.cores) / ranks_per_host;
}

double op_seconds(const runtime::PlannedProgram& plan, const runtime::Step& step, const Machine& m,
                  int ranks_per_host) {
  const Work w{step.label, step.kernel->implementation(), dtype_of(plan, step), step.cost.flops,
               step.cost.bytes};
  const double all = m.cores;
  const double own = cores_of_rank(m, ranks_per_host);
  // More ranks than cores: each waits while others compute.
  const double crowded = std::max(1.0, ranks_per_host * own / all) * std::max(1.0, 1 / own);
  const std::optional<double> by_all = by_samples(m, w, kAllCores);
  const auto by_one = all > 1 && own < all ? by_samples(m, w, 1) : std::nullopt;
  if (by_one) {
    if (own <= 1 || !by_all) return *by_one * crowded / std::max(1.0, own);
    // Between one core and all: as if every doubling helped alike.
    const double share = std::log(own) / std::log(all);
    return std::pow(*by_one, 1 - share) * std::pow(*by_all, share) * crowded;
  }
  const double less = all / std::max(own, 1.0) * crowded;
  if (!by_all) return m.op_s + by_rates(m, w.dtype, w.flops, w.bytes) * less;
  return m.op_s + (*by_all - m.op_s) * less;
}

}  // namespace fleetx::predict
