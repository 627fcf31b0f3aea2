#include "fleetx/optimizers/lib/options.h"

namespace fleetx::optim {

Clip clip_by_value(double low, double high) {
  check_arg(low < high, "clip_by_value: the lower bound ", low, " must be below ", high);
  return {.kind = Clip::Kind::kValue, .low = low, .high = high};
}

Clip clip_by_norm(double max_norm) {
  check_arg(max_norm > 0, "clip_by_norm: the norm must be positive, got ", max_norm);
  return {.kind = Clip::Kind::kNorm, .max_norm = max_norm};
}

Clip clip_by_global_norm(double max_norm) {
  check_arg(max_norm > 0, "clip_by_global_norm: the norm must be positive, got ", max_norm);
  return {.kind = Clip::Kind::kGlobalNorm, .max_norm = max_norm};
}

}  // namespace fleetx::optim
