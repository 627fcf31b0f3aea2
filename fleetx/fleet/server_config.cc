#include "fleetx/fleet/server_config.h"

#include "fleetx/base/error.h"

namespace fleetx::fleet {

ServerConfig server_config_of(const DistributedStrategy& strategy) {
  const int k = strategy.a_sync_configs.k_steps;
  check_arg(strategy.a_sync || k <= 0, "DistributedStrategy: a_sync_configs.k_steps is ", k,
            " (geo), but a_sync is off (sync); set a_sync = true, or k_steps = 0");
  ServerConfig config;
  config.mode = !strategy.a_sync ? "sync" : k > 0 ? "geo" : "async";
  config.k_steps = config.mode == "geo" ? k : 0;
  config.staleness = strategy.a_sync_configs.staleness;
  check(config);
  return config;
}

void check(const ServerConfig& c) {
  check_arg(c.mode == "sync" || c.mode == "async" || c.mode == "half_async" || c.mode == "geo" ||
                c.mode == "alone",
            "servers: mode is '", c.mode, "'; known: sync, async, half_async, geo");
  check_arg((c.mode == "geo") == (c.k_steps > 0), "servers: k_steps is ", c.k_steps,
            " and the mode ", c.mode, "; k_steps > 0 and geo go together");
  check_arg(c.split_method == "RoundRobin" || c.split_method == "HashName",
            "servers: split_method is '", c.split_method, "'; known: RoundRobin, HashName");
  check_arg(c.min_block_size >= 8192, "servers: min_block_size is ", c.min_block_size,
            "; must be at least 8192");
  check_arg(c.staleness >= -1 && (c.staleness < 0 || c.mode == "async"), "servers: staleness is ",
            c.staleness, " and the mode ", c.mode,
            "; it bounds how far async workers may be apart, -1: not at all");
  check_arg(!c.dc_asgd || c.mode == "async" || c.mode == "half_async",
            "servers: dc_asgd compensates the delays of async and half_async; the mode is ",
            c.mode);
}

}  // namespace fleetx::fleet
