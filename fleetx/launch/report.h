// The texts that fleetrun prints.
#pragma once

#include <string>

#include "fleetx/launch/plan.h"
#include "fleetx/launch/supervisor.h"

namespace fleetx::launch {

// "-----------  Configuration Arguments -----------", a line per option, and a closing line.
std::string configuration_block(const Options& options);

// The boxed table of a process's variables. Long values are truncated at the front.
std::string environment_table(const Variables& variables);

// The variables of the first process of a role that the table shows: never the secret.
Variables shown_variables(const JobPlan& plan, const Variables& variables);

// PADDLE_TRAINER_ENDPOINTS and one endpoint per line, for log/endpoints.log.
std::string endpoints_log(const JobPlan& plan);

// "slot 0 = core 0, slot 1 = core 1; OMP_NUM_THREADS=1", for the workers of this machine.
std::string slots_line(const JobPlan& plan, const Environment& environment);

// The table at the end: exit of each process, how long it ran, where its log is.
std::string summary(const JobPlan& plan, const Outcome& outcome, const std::string& log_dir);

std::string seconds_text(double seconds);  // "0.31 s", "12.3 s", "1 h 02 min 03 s"

}  // namespace fleetx::launch
