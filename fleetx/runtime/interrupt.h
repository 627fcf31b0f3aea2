// A question asked before every op of a running plan: a front end that must be able to stop one
// (Ctrl-C in Python) answers by throwing. Parameters then are as far as the step had come.
#pragma once

namespace fleetx::runtime {

// Called by the thread that runs the plan; must be cheap. Null: nothing is asked.
void set_interrupt(void (*check)());

void check_interrupt();

}  // namespace fleetx::runtime
