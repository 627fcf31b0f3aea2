// The launch plan: which processes a job has on which machine, and the environment of each. A pure
// function of flags, environment and facts of the machine.
//
//   JobPlan plan = make_plan(options, environment, host_facts());
//   ... bind the ports that are 0 (ports.h), then for each local process:
//   environment_of(plan, process, {.store = "127.0.0.1:4242", .secret = "..."});
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/base/job_env.h"
#include "fleetx/launch/address.h"
#include "fleetx/launch/options.h"
#include "fleetx/launch/topology.h"

namespace fleetx::launch {

struct Host {
  std::string name;
  std::vector<std::string> addresses;
  std::vector<Core> cores;
  Resolve resolve = resolve_by_system;
  std::function<std::string(const Endpoint&)> address_towards = own_address_towards;
  double cpu_quota = 0;  // of fleetrun's control group, in cores; 0: none
};
Host host_facts();

struct Process {
  JobRole role = JobRole::kWorker;
  int rank = 0;  // in its role
  int node = 0;
  int local_rank = 0;  // in its role, on its machine
  Endpoint endpoint;
  std::string devices;  // slots: "0", "0,1"
  Share share;

  std::string name() const;      // "worker 3"
  std::string log_name() const;  // "workerlog.0": numbered per machine
};

struct JobPlan {
  Mode mode = Mode::kCollective;
  std::vector<Process> processes;  // of all machines, in start order
  int node = 0, nodes = 1;
  Endpoint store;  // of the processes; port 0: chosen by binding
  std::string job_id;
  // PaddleCloud has set the role of the single process: its environment is not changed.
  bool roles_from_environment = false;
  std::vector<std::string> warnings;
  // --master: `processes` has only those of this machine until the rendezvous.
  bool needs_rendezvous = false;

  bool is_local(const Process& process) const { return process.node == node; }
  std::vector<Endpoint> endpoints(JobRole role) const;
  int local_count(JobRole role) const;
};

// After a rendezvous through --master: the endpoints that each machine has bound, by node.
struct BoundEndpoints {
  std::vector<std::vector<Endpoint>> endpoints;
};

// Bad input is kInvalidArgument with one line: what, where, remedy.
JobPlan make_plan(const Options& options, const Environment& environment, const Host& host,
                  const std::optional<BoundEndpoints>& bound = std::nullopt);

// The workers that one machine starts in a collective job, by their slots.
std::vector<std::string> slots_of(const Options& options, const Environment& environment);

struct ProcessSetup {
  std::string store, secret;
  int restart = 0;
  int listen_fd = -1;
  int rejoin = 0;  // how often it was started again while the others went on
  std::string snapshot{};
  double snapshot_seconds = 0;
  int replicas = 1;
  std::string server_memory{}, server_disk{};
};
using Variables = std::vector<std::pair<std::string, std::string>>;

// The variables of base/job_env.h, those of the printed table first.
Variables environment_of(const JobPlan& plan, const Process& process, const ProcessSetup& setup);

// The environment for execve: the user's without proxies and variables of another job, plus ours.
std::vector<std::string> merged_environment(const Environment& user, const JobPlan& plan,
                                            const Process& process, const ProcessSetup& setup);

}  // namespace fleetx::launch
