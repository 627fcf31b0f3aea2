// How a job with parameter servers trains, whichever way the user has said it.
#pragma once

#include <cstdint>
#include <string>

#include "fleetx/fleet/distributed_strategy.h"

namespace fleetx::fleet {

struct ServerConfig {
  // sync: the gradients of all workers are averaged in every step: what one worker would do with
  //   the whole batch.
  // async, half_async: servers apply each worker's gradients as they come. half_async: the worker
  //   waits until its own are applied before it goes on.
  // geo: workers train by themselves and exchange what they have learned every k_steps.
  // alone: there are no servers, and this process keeps the tables that are declared for them.
  std::string mode = "sync";
  int k_steps = 0;     // geo
  int staleness = -1;  // async: steps that a worker may be ahead of the slowest one; -1: any number
  bool dc_asgd = false;  // async, half_async: DC-ASGD (ps/job_spec.h, delay_compensated)
  // How parameters are cut and dealt out (ps/slicing.h).
  bool slice_var_up = true;
  std::string split_method = "RoundRobin";  // or HashName
  int64_t min_block_size = 8192;
  bool operator==(const ServerConfig&) const = default;
};

// As DistributedStrategy says it: a_sync off: sync; on: async, or geo with k_steps > 0. One that
// nobody has changed reads a_sync = true: async.
ServerConfig server_config_of(const DistributedStrategy& strategy);

// kInvalidArgument for values that make no sense.
void check(const ServerConfig& config);

}  // namespace fleetx::fleet
