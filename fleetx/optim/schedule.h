// Learning-rate schedules, computed in the program from its step counter (0 in the first step), so
// that they are saved and resumed with it:
//
//   Var lr = optim::warm_up(optim::cosine(b, 0.1, 500, 90), 2500, 0.0, 0.1);
//   optim::Momentum opt({.lr = lr});
//
// All give f32[1]. The formulas are those of paddle.fluid.layers.learning_rate_scheduler.
#pragma once

#include <vector>

#include "fleetx/ir/builder.h"

namespace fleetx::optim {

using ir::Var;

// The step counter goes up at the end of every run of the program, after all that has read it.
// Schedules and optimizers call this: a schedule counts whether or not an optimizer uses it.
void count_step(ir::Builder& b);

Var constant(ir::Builder& b, double lr);

// values[i] while step < boundaries[i], the last value afterwards.
Var piecewise(ir::Builder& b, std::vector<int64_t> boundaries, std::vector<double> values);

struct DecayOptions {
  int64_t steps = 1;  // decay is applied once per so many steps
  double rate = 0.5;
  bool staircase = false;  // in jumps instead of smoothly
};
Var exponential(ir::Builder& b, double lr, DecayOptions o);   // lr * rate^(step/steps)
Var natural_exp(ir::Builder& b, double lr, DecayOptions o);   // lr * e^(-rate * step/steps)
Var inverse_time(ir::Builder& b, double lr, DecayOptions o);  // lr / (1 + rate * step/steps)

// lr * factor^floor(step / every)
Var step_decay(ir::Builder& b, double lr, int64_t every, double factor = 0.1);

struct PolynomialOptions {
  int64_t steps = 1;  // until `end` is reached
  double end = 0.0001;
  double power = 1.0;
  bool cycle = false;  // start again, over a longer and longer time
};
Var polynomial(ir::Builder& b, double lr, PolynomialOptions o);

// lr/2 * (1 + cos(pi * epoch / epochs)), epoch = floor(step / steps_per_epoch).
Var cosine(ir::Builder& b, double lr, int64_t steps_per_epoch, int64_t epochs);

// lr * width^-0.5 * min(n^-0.5, n * warm_up_steps^-1.5) with n = step + 1 (Vaswani et al. 2017).
Var noam(ir::Builder& b, int64_t width, int64_t warm_up_steps, double lr = 1.0);

// From `start` to `end` in a line over the first steps, then `after`: any schedule.
Var warm_up(const Var& after, int64_t steps, double start, double end);
Var warm_up(ir::Builder& b, double after, int64_t steps, double start, double end);

}  // namespace fleetx::optim
