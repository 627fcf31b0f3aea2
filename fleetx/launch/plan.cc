#include "fleetx/launch/plan.h"

#include <algorithm>

#include "fleetx/base/cgroup.h"
#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/base/threads.h"

namespace fleetx::launch {
namespace {

constexpr int kCollectiveStartPort = 6070, kServerStartPort = 6170, kMaxPort = 65535;

// Of all processes of this machine together.
int threads_of(const Host& host) {
  return threads_within(std::max(1, static_cast<int>(host.cores.size())), host.cpu_quota);
}

bool is_own(const Host& host, const std::string& ip) {
  return is_loopback(ip) || std::ranges::count(host.addresses, ip) > 0;
}

std::optional<int> start_port(const Environment& environment) {
  const auto text = find(environment, "FLAGS_START_PORT");
  if (!text) return std::nullopt;
  return whole_number("environment variable FLAGS_START_PORT", *text, 1, kMaxPort);
}

void check_own(const char* flag, const std::string& ip, const Host& host) {
  check_arg(is_own(host, ip), flag, ": ", ip, " is not an address of this machine (",
            host.name.empty() ? "it" : host.name, " has ", join(host.addresses, ", "),
            "); start fleetrun on a machine of the list");
}

// Which of the machines this one is.
int find_own(const char* flag, const std::vector<std::string>& ips, const Environment& environment,
             const Host& host) {
  if (ips.size() == 1) {
    check_own(flag, ips[0], host);
    return 0;
  }
  for (const std::string& ip : ips)
    check_arg(!is_loopback(ip), flag, ": ", ip,
              " means another machine on each machine; give addresses that all can reach");
  const auto pod_ip = find(environment, job_var::kPodIp);
  int own = -1;
  for (size_t i = 0; i < ips.size(); ++i) {
    if (pod_ip ? ips[i] != *pod_ip : !is_own(host, ips[i])) continue;
    check_arg(own < 0, flag, ": ", own < 0 ? "" : ips[static_cast<size_t>(own)], " and ", ips[i],
              " are both of this machine; list each machine once, or say with POD_IP which it is");
    own = static_cast<int>(i);
  }
  if (pod_ip)
    check_arg(own >= 0, flag, ": POD_IP=", *pod_ip, " is not in ", join(ips, ","),
              "; it must name one of the machines");
  check_arg(own >= 0, flag, ": none of ", join(ips, ", "), " is an address of this machine (",
            host.name, " has ", join(host.addresses, ", "),
            "); start fleetrun on the machines of the list");
  return own;
}

struct Cluster {
  std::vector<std::string> ips;
  int node = 0;
  int first_port = 0;           // 0: ports are chosen by binding
  std::vector<Endpoint> given;  // PaddleCloud may name every endpoint
  size_t given_per_node = 0;
};

bool on_paddle_cloud(const Environment& environment) {
  for (const char* name :
       {"PADDLE_TRAINERS", job_var::kPodIp, job_var::kTrainerId, "TRAINER_PORTS_NUM"})
    if (!find(environment, name)) return false;
  return true;
}

Cluster cluster_of_cloud(const Options& o, const Environment& environment, const Host& host,
                         size_t per_node, JobPlan& plan) {
  Cluster cluster;
  for (const Endpoint& node : parse_endpoints(
           "PADDLE_TRAINERS", *find(environment, "PADDLE_TRAINERS"), Port::kNone, host.resolve))
    cluster.ips.push_back(node.ip);
  const int nodes = static_cast<int>(cluster.ips.size());
  cluster.node = whole_number("environment variable PADDLE_TRAINER_ID",
                              *find(environment, job_var::kTrainerId), 0, nodes - 1);
  const std::string pod_ip = *find(environment, job_var::kPodIp);
  check_arg(cluster.ips[static_cast<size_t>(cluster.node)] == pod_ip, "POD_IP=", pod_ip,
            " is not number PADDLE_TRAINER_ID=", cluster.node,
            " of PADDLE_TRAINERS=", join(cluster.ips, ","));
  check_own("POD_IP", pod_ip, host);
  if (o.ips && *o.ips != join(cluster.ips, ","))
    plan.warnings.push_back(str("--ips=", *o.ips, " differs from PADDLE_TRAINERS=",
                                join(cluster.ips, ","), "; the latter is used"));
  const int ports = whole_number("environment variable TRAINER_PORTS_NUM",
                                 *find(environment, "TRAINER_PORTS_NUM"), 0, kMaxPort);
  if (const auto all = find(environment, "DISTRIBUTED_TRAINER_ENDPOINTS")) {
    cluster.given =
        parse_endpoints("DISTRIBUTED_TRAINER_ENDPOINTS", *all, Port::kRequired, host.resolve);
    cluster.given_per_node = static_cast<size_t>(ports);
    check_arg(cluster.given.size() == cluster.ips.size() * cluster.given_per_node,
              "DISTRIBUTED_TRAINER_ENDPOINTS has ", cluster.given.size(), " entries, not ", nodes,
              " machines x TRAINER_PORTS_NUM=", ports);
    check_arg(per_node <= cluster.given_per_node, "TRAINER_PORTS_NUM=", ports, " ports for ",
              per_node, " workers per machine; ask for fewer workers or more ports");
    return cluster;
  }
  const auto port = find(environment, job_var::kPort);
  cluster.first_port = start_port(environment).value_or(kServerStartPort);
  if (port && nodes > 1 && static_cast<size_t>(ports) >= per_node)
    cluster.first_port = whole_number("environment variable PADDLE_PORT", *port, 1, kMaxPort);
  return cluster;
}

Cluster cluster_of_flags(const Options& o, const Environment& environment, const Host& host) {
  Cluster cluster;
  for (const Endpoint& node :
       parse_endpoints("--ips", o.ips.value_or("127.0.0.1"), Port::kNone, host.resolve))
    cluster.ips.push_back(node.ip);
  cluster.node = find_own("--ips", cluster.ips, environment, host);
  // Each machine must know the ports of the others in advance, so they are fixed.
  const int several = cluster.ips.size() > 1 ? kCollectiveStartPort : 0;
  cluster.first_port = start_port(environment).value_or(several);
  return cluster;
}

// --master: each machine chooses its ports, so those of the others are known only after the
// rendezvous.
void plan_master(const Options& o, const Environment& environment, const Host& host,
                 const std::optional<BoundEndpoints>& bound, JobPlan& plan) {
  const std::string nnodes = o.nnodes.value_or("1");
  check_arg(nnodes.find(':') == std::string::npos, "--nnodes='", nnodes,
            "': a number of machines that changes is not supported; give one number");
  plan.nodes = whole_number("--nnodes", nnodes, 1, 65536);
  const int rank = o.rank.value_or(-1);  // -1: not given
  check_arg(plan.nodes == 1 || rank >= 0, "--nnodes=", plan.nodes,
            " needs --rank: the number of this machine, from 0 (or PADDLE_RANK)");
  plan.node = std::max(0, rank);
  check_arg(plan.node < plan.nodes, "--rank=", plan.node,
            " must be less than --nnodes=", plan.nodes);
  const std::vector<Endpoint> master =
      parse_endpoints("--master", *o.master, Port::kRequired, host.resolve);
  check_arg(master.size() == 1, "--master='", *o.master,
            "': give one address, as in 10.0.0.1:6070");
  plan.store = master[0];
  if (plan.node == 0) check_own("--master", master[0].ip, host);
  plan.needs_rendezvous = plan.nodes > 1 && !bound;
  const std::string ip = plan.node == 0 ? master[0].ip : host.address_towards(master[0]);
  const std::vector<std::string> slots = slots_of(o, environment);
  const std::vector<Share> shares =
      share_cores(host.cores, static_cast<int>(slots.size()), host.cpu_quota);
  for (int node = 0; node < plan.nodes; ++node) {
    const bool here = node == plan.node;
    std::vector<Endpoint> endpoints;
    if (bound)
      endpoints = bound->endpoints[static_cast<size_t>(node)];
    else if (here)
      endpoints.assign(slots.size(), {ip, 0});
    for (size_t i = 0; i < endpoints.size(); ++i)
      plan.processes.push_back({JobRole::kWorker, static_cast<int>(plan.processes.size()), node,
                                static_cast<int>(i), endpoints[i], here ? slots[i] : "0",
                                here ? shares[i] : Share{}});
  }
}

void plan_collective(const Options& o, const Environment& environment, const Host& host,
                     JobPlan& plan) {
  const std::vector<std::string> slots = slots_of(o, environment);
  const bool cloud =
      on_paddle_cloud(environment) && find(environment, "PADDLE_TRAINERS_NUM") != "1";
  const Cluster cluster = cloud ? cluster_of_cloud(o, environment, host, slots.size(), plan)
                                : cluster_of_flags(o, environment, host);
  plan.node = cluster.node;
  plan.nodes = static_cast<int>(cluster.ips.size());
  const int per_node = static_cast<int>(slots.size());
  check_arg(cluster.first_port + per_node <= kMaxPort, "FLAGS_START_PORT=", cluster.first_port,
            " leaves no room for ", per_node, " ports up to ", kMaxPort);
  const std::vector<Share> shares = share_cores(host.cores, per_node, host.cpu_quota);
  for (int node = 0; node < plan.nodes; ++node)
    for (int i = 0; i < per_node; ++i) {
      const int port = cluster.first_port == 0 ? 0 : cluster.first_port + i;
      Process process{JobRole::kWorker,
                      node * per_node + i,
                      node,
                      i,
                      {cluster.ips[static_cast<size_t>(node)], port},
                      slots[static_cast<size_t>(i)],
                      shares[static_cast<size_t>(i)]};
      if (!cluster.given.empty())
        process.endpoint =
            cluster
                .given[static_cast<size_t>(node) * cluster.given_per_node + static_cast<size_t>(i)];
      plan.processes.push_back(process);
    }
  const int rendezvous_port = (cluster.first_port > 1 ? cluster.first_port : kServerStartPort) - 1;
  // Below the workers' ports: machines with different numbers of workers still use the same port,
  // and the check there reports the difference.
  plan.store = {cluster.ips[0], plan.nodes > 1 ? rendezvous_port : 0};
}

// Endpoints of one role from its list or its number.
std::vector<Endpoint> role_endpoints(const char* list_flag, const std::optional<std::string>& list,
                                     const char* count_flag, const std::optional<int>& count,
                                     Port port, const Host& host) {
  if (!list) return std::vector<Endpoint>(static_cast<size_t>(count.value_or(0)), {"127.0.0.1", 0});
  const std::vector<Endpoint> endpoints = parse_endpoints(list_flag, *list, port, host.resolve);
  check_arg(!count || static_cast<size_t>(*count) == endpoints.size(), count_flag, "=",
            count.value_or(0), " but ", list_flag, " has ", endpoints.size(),
            " entries; leave out ", count_flag);
  return endpoints;
}

void check_all_differ(const std::vector<Process>& processes) {
  std::vector<std::string> seen;
  for (const Process& process : processes) {
    if (process.endpoint.port == 0) continue;
    const std::string endpoint = to_string(process.endpoint);
    check_arg(std::ranges::count(seen, endpoint) == 0, process.name(), ": ", endpoint,
              " belongs to another process of the job already; give it a port of its own");
    seen.push_back(endpoint);
  }
}

// Workers of several machines without ports get consecutive ones, the same on every machine. With
// FLAGS_START_PORT all processes do.
void give_ports(JobPlan& plan, const Environment& environment, bool several) {
  const auto start = start_port(environment);
  if (!start && !several) return;
  int next =
      start.value_or(kServerStartPort + static_cast<int>(plan.endpoints(JobRole::kServer).size()));
  for (Process& process : plan.processes)
    if (process.endpoint.port == 0) process.endpoint.port = next++;
  check_arg(next <= kMaxPort, "FLAGS_START_PORT: the ports would pass ", kMaxPort);
}

// Which process of the job a pod runs. Only for reports: the program reads its own environment.
Process process_of_pod(const Environment& environment) {
  Process process;
  const auto role = find(environment, job_var::kTrainingRole),
             ip = find(environment, job_var::kPodIp), port = find(environment, job_var::kPort),
             id = find(environment, job_var::kTrainerId);
  if (role == "PSERVER" || role == "HETER_TRAINER") {
    const bool server = role == "PSERVER";
    process.role = server ? JobRole::kServer : JobRole::kHeterWorker;
    const auto all =
        split_list(find(environment, server ? job_var::kServerEndpoints : job_var::kHeterEndpoints)
                       .value_or(""));
    const auto own = std::ranges::find(all, str(ip.value_or(""), ":", port.value_or("")));
    if (own != all.end()) process.rank = static_cast<int>(own - all.begin());
  } else if (id) {
    process.rank = whole_number("environment variable PADDLE_TRAINER_ID", *id, 0, kMaxPort);
  }
  return process;
}

int unused_port(const JobPlan& plan, const std::string& ip) {
  int port = kServerStartPort;
  const auto taken = [&](const Process& p) { return p.endpoint == Endpoint{ip, port}; };
  while (std::ranges::any_of(plan.processes, taken)) ++port;
  return port;
}

void plan_parameter_server(const Options& o, const Environment& environment, const Host& host,
                           JobPlan& plan) {
  const auto add = [&](JobRole role, const std::vector<Endpoint>& endpoints) {
    for (const Endpoint& endpoint : endpoints)
      plan.processes.push_back(
          {role, static_cast<int>(plan.endpoints(role).size()), 0, 0, endpoint, "0", {}});
  };
  add(JobRole::kServer,
      role_endpoints("--servers", o.servers, "--server_num", o.server_num, Port::kRequired, host));
  add(JobRole::kWorker,
      role_endpoints("--workers", o.workers, "--worker_num", o.worker_num, Port::kOptional, host));

  // Machines are numbered in order of appearance: servers first, then workers.
  std::vector<std::string> ips;
  bool all_own = true;
  for (const Process& process : plan.processes) {
    all_own = all_own && is_own(host, process.endpoint.ip);
    if (std::ranges::count(ips, process.endpoint.ip) == 0) ips.push_back(process.endpoint.ip);
  }
  if (!all_own || find(environment, job_var::kPodIp)) {
    plan.nodes = static_cast<int>(ips.size());
    plan.node = find_own("--servers, --workers", ips, environment, host);
    for (Process& process : plan.processes)
      process.node = static_cast<int>(std::ranges::find(ips, process.endpoint.ip) - ips.begin());
  }
  give_ports(plan, environment, plan.nodes > 1);
  check_all_differ(plan.processes);
  std::map<std::pair<int, JobRole>, int> count;
  for (Process& process : plan.processes)
    process.local_rank = count[{process.node, process.role}]++;
  const int threads = threads_of(host) / std::max(1, plan.local_count(JobRole::kWorker));
  for (Process& process : plan.processes) process.share.threads = std::max(1, threads);
  const std::string& first = plan.processes.front().endpoint.ip;
  const int fixed = plan.nodes > 1 ? unused_port(plan, first) : 0;
  plan.store = {first, o.http_port.value_or(fixed)};
}

}  // namespace

Host host_facts() {
  Host host{own_host_name(), own_addresses(), usable_cores()};
  host.cpu_quota = cgroup::cpu_quota();
  return host;
}

std::string Process::name() const { return str(to_string(role), " ", rank); }

std::string Process::log_name() const {
  const char* kind = role == JobRole::kServer   ? "server"
                     : role == JobRole::kWorker ? "worker"
                                                : "heter";
  return str(kind, "log.", local_rank);
}

std::vector<Endpoint> JobPlan::endpoints(JobRole role) const {
  std::vector<Endpoint> endpoints;
  for (const Process& process : processes)
    if (process.role == role) endpoints.push_back(process.endpoint);
  return endpoints;
}

int JobPlan::local_count(JobRole role) const {
  return static_cast<int>(std::ranges::count_if(
      processes, [&](const Process& p) { return p.role == role && is_local(p); }));
}

JobPlan make_plan(const Options& options, const Environment& environment, const Host& host,
                  const std::optional<BoundEndpoints>& bound) {
  check(options);
  JobPlan plan;
  plan.job_id = options.job_id.value_or("default");
  const std::optional<Mode> asked = mode_of(options);
  // Kubernetes and PaddleCloud start every server and worker as a pod of its own.
  const bool pod = find(environment, job_var::kTrainingRole) &&
                   !find(environment, job_var::kJobId) &&
                   find(environment, job_var::kServerEndpoints);
  if (!asked && pod) {
    plan.mode = Mode::kParameterServer;
    plan.roles_from_environment = true;
    plan.processes.push_back(process_of_pod(environment));
    plan.processes[0].share.threads = threads_of(host);
    return plan;
  }
  plan.mode = asked.value_or(Mode::kCollective);
  if (!asked && !on_paddle_cloud(environment))
    plan.warnings.push_back("Not found distinct arguments. Default use collective mode");
  if (options.master)
    plan_master(options, environment, host, bound, plan);
  else if (plan.mode == Mode::kCollective)
    plan_collective(options, environment, host, plan);
  else
    plan_parameter_server(options, environment, host, plan);
  return plan;
}

}  // namespace fleetx::launch
