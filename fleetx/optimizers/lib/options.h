// Types of options that every optimizer has.
#pragma once

#include <variant>

#include "fleetx/ir/builder.h"

namespace fleetx::optim {

// A number, or a schedule computed in the program (see optim/schedule.h).
using LearningRate = std::variant<double, ir::Var>;

// What happens to gradients before decay and update.
struct Clip {
  enum class Kind { kNone, kValue, kNorm, kGlobalNorm };
  Kind kind = Kind::kNone;
  double low = 0, high = 0;  // kValue
  double max_norm = 0;       // kNorm, kGlobalNorm
};
Clip clip_by_value(double low, double high);
Clip clip_by_norm(double max_norm);         // each gradient by itself
Clip clip_by_global_norm(double max_norm);  // all gradients as one vector

}  // namespace fleetx::optim
