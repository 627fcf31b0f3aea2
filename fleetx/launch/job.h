// A whole run of fleetrun: from flags to exit code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fleetx/launch/plan.h"

namespace fleetx::launch {

// What the launcher needs of the rendezvous store (comm/ has it; this folder does not see comm/).
class Store {
 public:
  virtual ~Store() = default;
  virtual std::string endpoint() const = 0;  // ip:port for FLEETX_STORE
};

// Serves a store at the endpoint (port 0: any) to those who know the secret.
using ServeStore =
    std::function<std::unique_ptr<Store>(const Endpoint& where, const std::string& secret)>;

// Runs the job and returns the exit code of fleetrun. Bad input is kInvalidArgument, before
// anything is started.
int run_job(Options options, const ServeStore& serve_store);

}  // namespace fleetx::launch
