// The parameter servers of a job, as seen by one of its processes: a server, or a worker with its
// connections to them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fleetx/fleet/role_maker.h"
#include "fleetx/fleet/server_config.h"
#include "fleetx/fleet/worker_servers.h"
#include "fleetx/ir/program.h"
#include "fleetx/ps/server.h"
#include "fleetx/runtime/scope.h"

namespace fleetx::fleet {

// Of a job that was started without one, which protects from other jobs by mistake, but not from
// anyone who knows the addresses.
std::string secret_of_servers(const std::vector<std::string>& endpoints);

class ServerJob {
 public:
  // The programs with their updates. A worker's ops find its servers from now on.
  ServerJob(const ir::Program& main, const ir::Program& startup, const ServerConfig& config,
            const RoleMaker& role);

  const ps::JobSpec& tables() const { return tables_; }

  // Of a server: see fleet.h.
  void listen(const std::string& model_dir);
  void load(const std::string& model_dir);
  void serve();

  // Of a worker.
  WorkerServers& worker() const;
  void connect(runtime::Scope& scope);
  void pull(runtime::Scope& scope);
  void share(runtime::Scope& scope);

 private:
  // Calls with the parameters' values as the scope has them; writes back what they became.
  void with_values(runtime::Scope& scope,
                   const std::function<void(std::span<const kernel::Servers::Value>)>& call);

  bool is_in(const runtime::Scope& scope) const;  // all parameters have values there

  void tell_launcher(const std::string& key, const std::string& value) const;

  RoleMaker role_;
  std::optional<int> listen_fd_;  // until a server has it
  std::string mode_;
  ps::JobSpec tables_;
  bool geo_;
  int64_t k_steps_;
  std::string step_;     // the variable that counts steps
  int64_t shared_ = -1;  // geo: its value at the last call of share
  std::shared_ptr<WorkerServers> worker_;
  std::unique_ptr<ps::Server> server_;
};

}  // namespace fleetx::fleet
