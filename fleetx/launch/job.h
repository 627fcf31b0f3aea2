// A whole run of fleetrun: from flags to exit code.
#pragma once

#include "fleetx/launch/options.h"
#include "fleetx/launch/store.h"

namespace fleetx::launch {

// In the log folder while a job with servers runs: its secret, for `fleetx ps`.
inline constexpr const char* kSecretFile = "secret";

// Runs the job and returns the exit code of fleetrun. Bad input is kInvalidArgument, before
// anything is started.
int run_job(Options options, const Stores& stores);

}  // namespace fleetx::launch
