// The environment of each process (read by base/job_env.h), and the slots of workers.
#include <algorithm>
#include <set>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/launch/plan.h"

namespace fleetx::launch {
namespace {

constexpr int kMaxSlot = 65535;

// Devices by number; nullopt if there is no list.
std::optional<std::vector<std::string>> device_list(const std::string& what,
                                                    const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::vector<std::string> devices;
  for (const std::string& device : split_list(*text)) {
    const int number = whole_number(str(what, "='", *text, "': entry"), device, 0, kMaxSlot);
    check_arg(std::ranges::count(devices, str(number)) == 0, what, "='", *text, "': ", number,
              " is there twice; each worker needs a slot of its own");
    devices.push_back(str(number));
  }
  return devices;
}

struct Visible {
  std::vector<std::string> devices;
  bool by_name = false;  // some are GPU-... or MIG-..., which --gpus cannot select
};

// nullopt if CUDA_VISIBLE_DEVICES is unset or hides all devices. As in CUDA, a negative number
// hides itself and all that follow.
std::optional<Visible> visible_devices(const Environment& environment) {
  const auto text = find(environment, "CUDA_VISIBLE_DEVICES");
  if (!text || *text == "NoDevFiles") return std::nullopt;  // set by batch systems: none
  Visible visible;
  std::vector<std::string> numbers;
  for (const std::string& entry : split_list(*text)) {
    if (entry.starts_with("-")) break;
    const bool name = entry.starts_with("GPU-") || entry.starts_with("MIG-");
    visible.by_name = visible.by_name || name;
    visible.devices.push_back(entry);
    if (!name) numbers.push_back(entry);
  }
  if (visible.devices.empty()) return std::nullopt;
  const std::string what = "environment variable CUDA_VISIBLE_DEVICES";
  numbers = device_list(what, join(numbers, ",")).value();
  if (!visible.by_name) visible.devices = numbers;
  return visible;
}

// Each process gets the same number of devices.
std::vector<std::string> slices(const std::vector<std::string>& devices, int processes) {
  check_arg(devices.size() % static_cast<size_t>(processes) == 0, "--nproc_per_node=", processes,
            " does not divide the ", devices.size(), " slots ", join(devices, ","),
            "; give a divisor, or leave out one of the flags");
  const size_t each = devices.size() / static_cast<size_t>(processes);
  std::vector<std::string> result;
  for (size_t at = 0; at < devices.size(); at += each) {
    const auto begin = devices.begin() + static_cast<std::ptrdiff_t>(at);
    result.push_back(join({begin, begin + static_cast<std::ptrdiff_t>(each)}, ","));
  }
  return result;
}

// Variables of another job, or of the program that started fleetrun, must not be inherited.
bool belongs_to_contract(const std::string& name) {
  static const std::set<std::string> kNames{job_var::kTrainerId,       job_var::kCurrentEndpoint,
                                            job_var::kTrainersNum,     job_var::kTrainerEndpoints,
                                            job_var::kSelectedGpus,    job_var::kTrainingRole,
                                            job_var::kServerEndpoints, job_var::kHeterEndpoints,
                                            job_var::kPodIp,           job_var::kPort,
                                            job_var::kLocalRank,       job_var::kLocalSize,
                                            job_var::kNodes,           job_var::kNode,
                                            job_var::kJobId,           job_var::kStore,
                                            job_var::kSecret,          job_var::kListenFd,
                                            job_var::kRestart,         job_var::kRejoin,
                                            job_var::kSnapshot,        job_var::kSnapshotSeconds,
                                            "PADDLE_LOCAL_RANK",       "PADDLE_GLOBAL_RANK",
                                            "PADDLE_GLOBAL_SIZE"};
  return kNames.contains(name);
}

Variables collective_environment(const JobPlan& plan, const Process& process) {
  const std::vector<Endpoint> workers = plan.endpoints(JobRole::kWorker);
  const int local = plan.local_count(JobRole::kWorker);
  return {{job_var::kCurrentEndpoint, to_string(process.endpoint)},
          {job_var::kTrainersNum, str(workers.size())},
          {job_var::kTrainerEndpoints, to_csv(workers)},
          {job_var::kSelectedGpus, process.devices},
          {job_var::kTrainerId, str(process.rank)},
          {job_var::kLocalRank, str(process.local_rank)},
          {job_var::kLocalSize, str(local)},
          {job_var::kNodes, str(plan.nodes)},
          {job_var::kNode, str(plan.node)},
          {"PADDLE_LOCAL_RANK", str(process.local_rank)},
          {"PADDLE_GLOBAL_RANK", str(process.rank)},
          {"PADDLE_GLOBAL_SIZE", str(workers.size())}};
}

Variables server_job_environment(const JobPlan& plan, const Process& process) {
  Variables variables{{job_var::kServerEndpoints, to_csv(plan.endpoints(JobRole::kServer))},
                      {job_var::kTrainerEndpoints, to_csv(plan.endpoints(JobRole::kWorker))},
                      {job_var::kHeterEndpoints, ""},  // programs of the original read it
                      {job_var::kTrainersNum, str(plan.endpoints(JobRole::kWorker).size())}};
  const auto add = [&](const char* name, std::string value) {
    variables.emplace_back(name, std::move(value));
  };
  if (process.role == JobRole::kWorker) {
    add(job_var::kTrainingRole, "TRAINER");
    add(job_var::kTrainerId, str(process.rank));
  } else {
    add(job_var::kTrainingRole, "PSERVER");
  }
  add(job_var::kPort, str(process.endpoint.port));
  add(job_var::kPodIp, process.endpoint.ip);
  if (process.role != JobRole::kServer) add(job_var::kSelectedGpus, process.devices);
  add(job_var::kLocalRank, str(process.local_rank));
  add(job_var::kLocalSize, str(plan.local_count(process.role)));
  add(job_var::kNodes, str(plan.nodes));
  add(job_var::kNode, str(plan.node));
  return variables;
}

}  // namespace

std::vector<std::string> slots_of(const Options& o, const Environment& environment) {
  auto asked = device_list("--gpus", o.gpus);
  check_arg(!asked || !asked->empty(), "--gpus is empty; give slots, as in --gpus=0,1");
  const auto visible = visible_devices(environment);
  if (asked && visible && !visible->by_name) {
    // Processes see positions in the list of visible devices.
    const std::vector<std::string>& devices = visible->devices;
    for (std::string& device : *asked) {
      const auto found = std::ranges::find(devices, device);
      check_arg(found != devices.end(), "--gpus: ", device,
                " is not in CUDA_VISIBLE_DEVICES=", join(devices, ","),
                "; name slots of that list, or change the variable");
      device = str(found - devices.begin());
    }
  } else if (!asked && visible) {
    asked.emplace();
    for (size_t i = 0; i < visible->devices.size(); ++i) asked->push_back(str(i));
  }
  if (asked) return slices(*asked, o.nproc_per_node.value_or(static_cast<int>(asked->size())));
  std::vector<std::string> slots;
  for (int i = 0; i < o.nproc_per_node.value_or(1); ++i) slots.push_back(str(i));
  return slots;
}

Variables environment_of(const JobPlan& plan, const Process& process, const ProcessSetup& setup) {
  if (plan.roles_from_environment) return {};
  Variables variables = plan.mode == Mode::kCollective ? collective_environment(plan, process)
                                                       : server_job_environment(plan, process);
  variables.emplace_back(job_var::kJobId, plan.job_id);
  if (!setup.store.empty()) variables.emplace_back(job_var::kStore, setup.store);
  if (!setup.secret.empty()) variables.emplace_back(job_var::kSecret, setup.secret);
  if (setup.listen_fd >= 0) variables.emplace_back(job_var::kListenFd, str(setup.listen_fd));
  variables.emplace_back(job_var::kRestart, str(setup.restart));
  if (setup.rejoin > 0) variables.emplace_back(job_var::kRejoin, str(setup.rejoin));
  if (setup.replicas > 1) variables.emplace_back(job_var::kReplicas, str(setup.replicas));
  if (process.role == JobRole::kServer && !setup.server_memory.empty())
    variables.emplace_back(job_var::kServerMemory, setup.server_memory);
  if (process.role == JobRole::kServer && !setup.server_disk.empty())
    variables.emplace_back(job_var::kServerDisk, setup.server_disk);
  if (process.role == JobRole::kServer && !setup.snapshot.empty()) {
    variables.emplace_back(job_var::kSnapshot, setup.snapshot);
    variables.emplace_back(job_var::kSnapshotSeconds, str(setup.snapshot_seconds));
  }
  return variables;
}

std::vector<std::string> merged_environment(const Environment& user, const JobPlan& plan,
                                            const Process& process, const ProcessSetup& setup) {
  Environment merged = user;
  // Connections inside a job never go through a proxy.
  for (const char* proxy : {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"})
    merged.erase(proxy);
  if (!plan.roles_from_environment)
    std::erase_if(merged, [](const auto& entry) { return belongs_to_contract(entry.first); });
  // A number of threads set by the user is kept.
  if (!find(user, "OMP_NUM_THREADS") && !find(user, "FLEETX_THREADS"))
    merged["OMP_NUM_THREADS"] = str(process.share.threads);
  merged["PYTHONUNBUFFERED"] = std::string("1");
  // A server that has snapshots comes back; its workers wait for it.
  if (!setup.snapshot.empty() && !find(user, job_var::kReconnect))
    merged[job_var::kReconnect] = str(kReconnectSeconds);
  for (const auto& [name, value] : environment_of(plan, process, setup)) merged[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : merged) entries.push_back(str(name, "=", value));
  return entries;
}

}  // namespace fleetx::launch
