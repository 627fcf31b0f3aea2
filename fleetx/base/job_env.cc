#include "fleetx/base/job_env.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/base/rng.h"

namespace fleetx {
namespace {

using StartedBy = JobEnv::StartedBy;

class Reader {
 public:
  explicit Reader(const JobEnv::Lookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(std::string_view name) const { return lookup_(name); }
  std::vector<std::string> list(std::string_view name) const {
    return split_list(text(name).value_or(""));
  }
  std::optional<int> number(std::string_view name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    int number = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    constexpr int kMax = 1 << 24;  // of ranks, ports, machines
    check_arg(error == std::errc{} && end == value->data() + value->size() && number >= 0 &&
                  number <= kMax,
              "environment variable ", name, "='", *value, "' is not a number from 0 to ", kMax);
    return number;
  }
  std::optional<double> seconds(std::string_view name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    double number = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    check_arg(
        error == std::errc{} && end == value->data() + value->size() && number > 0 && number <= 1e9,
        "environment variable ", name, "='", *value, "' is not a number of seconds");
    return number;
  }
  std::string needed(std::string_view name, std::string_view why) const {
    const auto value = text(name);
    check_arg(value.has_value(), "environment variable ", name, " is missing: ", why,
              " (start the program with fleetrun, or set it)");
    return *value;
  }

 private:
  const JobEnv::Lookup& lookup_;
};

std::string host_of(const std::string& endpoint) { return endpoint.substr(0, endpoint.rfind(':')); }

int index_in(const std::vector<std::string>& list, const std::string& endpoint,
             std::string_view variable) {
  const auto found = std::ranges::find(list, endpoint);
  check_arg(found != list.end(), "this process is ", endpoint, ", which is not in ", variable, "='",
            join(list, ","), "'");
  return static_cast<int>(found - list.begin());
}

JobRole role_from(const std::string& name) {
  if (name == "TRAINER") return JobRole::kWorker;
  if (name == "PSERVER") return JobRole::kServer;
  check_arg(name == "HETER_TRAINER", "environment variable ", job_var::kTrainingRole, "='", name,
            "': expected TRAINER, PSERVER or HETER_TRAINER");
  return JobRole::kHeterWorker;
}

const std::vector<std::string>& endpoints_of(const JobEnv& job) {
  if (job.role == JobRole::kServer) return job.server_endpoints;
  return job.role == JobRole::kWorker ? job.worker_endpoints : job.heter_endpoints;
}

void check_rank(const JobEnv& job, std::string_view rank, std::string_view size) {
  check_arg(job.world > 0 && job.rank < job.world, "environment variable ", rank, "=", job.rank,
            " must be less than ", size, "=", job.world);
}

// A worker has its rank in a variable; a server finds it by its address.
void find_rank(const Reader& read, JobEnv& job) {
  if (job.role == JobRole::kWorker) {
    read.needed(job_var::kTrainerId, "it is the rank of this process");
    job.rank = *read.number(job_var::kTrainerId);
    check_rank(job, job_var::kTrainerId, job_var::kTrainersNum);
    const std::vector<std::string>& all = job.worker_endpoints;
    if (!all.empty()) job.endpoint = all[static_cast<size_t>(job.rank)];
    const auto current = read.text(job_var::kCurrentEndpoint);
    if (current && !all.empty())
      check_arg(index_in(all, *current, job_var::kTrainerEndpoints) == job.rank,
                job_var::kCurrentEndpoint, "=", *current, " is not number ", job.rank, " (",
                job_var::kTrainerId, ") in ", job_var::kTrainerEndpoints);
    return;
  }
  const bool server = job.role == JobRole::kServer;
  job.endpoint = read.needed(job_var::kPodIp, "it is the address of this server") + ":" +
                 read.needed(job_var::kPort, "it is the port of this server");
  job.rank = index_in(endpoints_of(job), job.endpoint,
                      server ? job_var::kServerEndpoints : job_var::kHeterEndpoints);
}

// The processes of its role on the same machine, by their addresses.
void find_local_rank(const Reader& read, JobEnv& job) {
  std::vector<std::string> hosts;
  for (const std::string& other : job.worker_endpoints)
    if (std::ranges::count(hosts, host_of(other)) == 0) hosts.push_back(host_of(other));
  const std::vector<std::string>& all = endpoints_of(job);
  const auto here = [&](const std::string& other) {
    return host_of(other) == host_of(job.endpoint);
  };
  if (!all.empty()) {
    job.local_rank = static_cast<int>(std::count_if(all.begin(), all.begin() + job.rank, here));
    job.local_world = static_cast<int>(std::ranges::count_if(all, here));
    job.nodes = std::max<int>(1, static_cast<int>(hosts.size()));
    job.node = static_cast<int>(std::ranges::find(hosts, host_of(job.endpoint)) - hosts.begin());
  }
  job.local_rank = read.number(job_var::kLocalRank).value_or(job.local_rank);
  job.local_world = read.number(job_var::kLocalSize).value_or(job.local_world);
  job.nodes = read.number(job_var::kNodes).value_or(job.nodes);
  job.node = read.number(job_var::kNode).value_or(job.node);
}

void read_paddle(const Reader& read, JobEnv& job) {
  job.started_by = StartedBy::kFleetrun;
  job.worker_endpoints = read.list(job_var::kTrainerEndpoints);
  job.server_endpoints = read.list(job_var::kServerEndpoints);
  job.heter_endpoints = read.list(job_var::kHeterEndpoints);
  job.world = static_cast<int>(job.worker_endpoints.size());
  if (job.worker_endpoints.empty()) {
    read.needed(job_var::kTrainersNum, "it is the number of workers");
    job.world = *read.number(job_var::kTrainersNum);
  }
  for (const std::string& one : job.worker_endpoints)
    check_arg(std::ranges::count(job.worker_endpoints, one) == 1, job_var::kTrainerEndpoints,
              " has ", one, " twice; each worker has an address of its own");
  const auto count = read.number(job_var::kTrainersNum);
  check_arg(!count || *count == job.world, job_var::kTrainersNum, "=", count.value_or(0), " but ",
            job_var::kTrainerEndpoints, " has ", job.world, " entries");
  if (!job.server_endpoints.empty())
    job.role = role_from(read.needed(job_var::kTrainingRole, "the job has servers and workers"));
  find_rank(read, job);
  find_local_rank(read, job);
}

// The variables of rank, size, ... of an MPI implementation.
struct MpiNames {
  const char *rank, *size, *local_rank, *local_size, *job;
};
constexpr MpiNames kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                            "PMIX_NAMESPACE"};
constexpr MpiNames kMpich{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
                          "PMI_JOBID"};

void read_mpi(const Reader& read, const MpiNames& names, JobEnv& job) {
  job.started_by = StartedBy::kMpi;
  read.needed(names.size, "mpirun sets it");
  job.rank = *read.number(names.rank);
  job.world = *read.number(names.size);
  check_rank(job, names.rank, names.size);
  job.local_rank = read.number(names.local_rank).value_or(job.rank);
  job.local_world = std::max(1, read.number(names.local_size).value_or(job.world));
  // By default mpirun fills one machine after the other.
  job.nodes = (job.world + job.local_world - 1) / job.local_world;
  job.node = job.rank / job.local_world;
  if (const auto id = read.text(names.job)) job.job_id = "mpi-" + *id;
}

// "2(x3),1" (SLURM_STEP_TASKS_PER_NODE): tasks of node i.
int tasks_of_node(const std::string& text, int node) {
  for (const std::string& part : split_list(text)) {
    int tasks = 0, times = 1;
    const char* end = part.data() + part.size();
    const auto first = std::from_chars(part.data(), end, tasks);
    bool ok = first.ec == std::errc{};
    if (ok && first.ptr != end) {
      const size_t x = part.find("(x");
      ok = x != std::string::npos && part.back() == ')' &&
           std::from_chars(part.data() + x + 2, end, times).ec == std::errc{};
    }
    check_arg(ok, "SLURM_STEP_TASKS_PER_NODE='", text, "' is not of the form 2(x3),1");
    if (node < times) return tasks;
    node -= times;
  }
  return 1;
}

void read_slurm(const Reader& read, JobEnv& job) {
  job.started_by = StartedBy::kSlurm;
  const auto step_tasks = read.number("SLURM_STEP_NUM_TASKS");
  job.rank = *read.number("SLURM_PROCID");
  job.world = step_tasks ? *step_tasks : read.number("SLURM_NTASKS").value_or(1);
  check_rank(job, "SLURM_PROCID", step_tasks ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
  job.node = read.number("SLURM_NODEID").value_or(0);
  job.nodes = read.number("SLURM_STEP_NUM_NODES").value_or(read.number("SLURM_NNODES").value_or(1));
  job.local_rank = read.number("SLURM_LOCALID").value_or(job.rank);
  const auto tasks = read.text("SLURM_STEP_TASKS_PER_NODE");
  job.local_world = tasks ? tasks_of_node(*tasks, job.node) : job.world / std::max(1, job.nodes);
  std::optional<std::string> nodes = read.text("SLURM_STEP_NODELIST");
  if (!nodes) nodes = read.text("SLURM_JOB_NODELIST");
  if (!nodes) nodes = read.text("SLURM_NODELIST");
  job.hosts = expand_host_list(nodes.value_or(""));
  job.job_id = "slurm-" + read.text("SLURM_JOB_ID").value_or("0") + "." +
               read.text("SLURM_STEP_ID").value_or("0");
}

}  // namespace

std::string_view to_string(JobRole role) {
  if (role == JobRole::kWorker) return "worker";
  return role == JobRole::kServer ? "server" : "heter worker";
}

JobEnv JobEnv::from(const Lookup& lookup) {
  const Reader read(lookup);
  JobEnv job;
  // The innermost launcher wins: fleetrun may run under mpirun, mpirun under Slurm.
  if (read.text(job_var::kTrainerEndpoints) || read.text(job_var::kServerEndpoints)) {
    read_paddle(read, job);
  } else if (read.text(kOpenMpi.rank)) {
    read_mpi(read, kOpenMpi, job);
  } else if (read.text(kMpich.rank)) {
    read_mpi(read, kMpich, job);
  } else if (read.text("SLURM_PROCID") && read.text("SLURM_STEP_ID")) {
    // Without a step this is the batch script itself, which runs once.
    read_slurm(read, job);
  } else {
    job.endpoint = "127.0.0.1:6170";
    job.worker_endpoints = {job.endpoint};
  }
  job.devices = read.text(job_var::kSelectedGpus).value_or("0");
  if (const auto id = read.text(job_var::kJobId)) job.job_id = *id;
  job.store = read.text(job_var::kStore).value_or("");
  job.secret = read.text(job_var::kSecret).value_or("");
  job.listen_fd = read.number(job_var::kListenFd);
  job.restart = read.number(job_var::kRestart).value_or(0);
  job.rejoin = read.number(job_var::kRejoin).value_or(0);
  job.snapshot = read.text(job_var::kSnapshot).value_or("");
  job.snapshot_seconds = read.seconds(job_var::kSnapshotSeconds).value_or(0);
  job.replicas = read.number(job_var::kReplicas).value_or(1);
  check_arg(job.replicas == 1 || job.replicas == 2, job_var::kReplicas, "=", job.replicas,
            ": a server has one copy (2) or none (1)");
  if (const auto memory = read.text(job_var::kServerMemory))
    job.server_memory = parse_bytes(str("environment variable ", job_var::kServerMemory), *memory);
  job.server_disk = read.text(job_var::kServerDisk).value_or("");
  job.silence_seconds = silence_from(lookup);
  job.reconnect_seconds = read.seconds(job_var::kReconnect).value_or(job.reconnect_seconds);
  const bool without_servers = job.server_endpoints.empty() && job.heter_endpoints.empty();
  if (job.started_by == StartedBy::kFleetrun && job.store.empty() && without_servers) {
    job.started_by = StartedBy::kEndpoints;
    meet_at_first_worker(job);
  }
  return job;
}

double JobEnv::silence_from(const Lookup& lookup) {
  return Reader(lookup).seconds(job_var::kSilence).value_or(JobEnv().silence_seconds);
}

JobEnv JobEnv::from_environment() {
  return from([](std::string_view name) { return env::get(name); });
}

std::string suffix_of_worker(std::string_view before) {
  const JobEnv job = JobEnv::from_environment();
  return job.world > 1 ? str(before, job.rank) : "";
}

int64_t parse_bytes(std::string_view what, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  constexpr std::string_view kUnits = " KMGT";
  const size_t power = unit.empty() ? 0 : kUnits.find(unit[0], 1);
  const double bytes = std::ldexp(number, 10 * static_cast<int>(power));
  check_arg(error == std::errc{} && unit.size() <= 1 && power < kUnits.size() && bytes >= 1 &&
                bytes < 0x1p60,
            what, "='", text, "': expected a number of bytes, as in 512M or 1.5G");
  return static_cast<int64_t>(bytes);
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (size_t at = 0; at != std::string_view::npos;) {
    const size_t end = text.find(',', at);
    std::string_view part = text.substr(at, end == std::string_view::npos ? end : end - at);
    const size_t first = std::min(part.find_first_not_of(' '), part.size());
    part = part.substr(first, part.find_last_not_of(' ') + 1 - first);
    parts.emplace_back(part);
    at = end == std::string_view::npos ? end : end + 1;
  }
  return parts;
}

namespace {

constexpr size_t kMaxHosts = 100'000;

// The numbers of "01-03,7", with the zeros they were written with.
std::vector<std::string> expand_ranges(const std::string& text, std::string_view whole) {
  std::vector<std::string> numbers;
  for (const std::string& part : split_list(text)) {
    const size_t dash = part.find('-');
    const std::string first = part.substr(0, dash);
    const std::string last = dash == std::string::npos ? first : part.substr(dash + 1);
    unsigned from = 0, to = 0;
    const auto a = std::from_chars(first.data(), first.data() + first.size(), from);
    const auto b = std::from_chars(last.data(), last.data() + last.size(), to);
    check_arg(a.ec == std::errc{} && b.ec == std::errc{} && a.ptr == first.data() + first.size() &&
                  b.ptr == last.data() + last.size() && from <= to && to - from < kMaxHosts &&
                  numbers.size() + (to - from) < kMaxHosts,
              "host list '", whole, "': '", part, "' is no range of numbers");
    for (unsigned number = from; number <= to; ++number) {
      const std::string digits = std::to_string(number);
      const size_t zeros = first.size() > digits.size() ? first.size() - digits.size() : 0;
      numbers.push_back(std::string(zeros, '0') + digits);
    }
  }
  return numbers;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view text) {
  std::vector<std::string> hosts;
  std::vector<std::string> open{""};  // the host being read, once per number in its brackets
  const auto finish = [&] {
    for (std::string& host : open)
      if (!host.empty()) hosts.push_back(std::move(host));
    open = {""};
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      finish();
    } else if (text[i] == '[') {
      const size_t close = text.find(']', i);
      check_arg(close != std::string_view::npos, "host list '", text, "' has no ']' to its '['");
      const std::vector<std::string> numbers =
          expand_ranges(std::string(text.substr(i + 1, close - i - 1)), text);
      check_arg(open.size() * numbers.size() + hosts.size() <= kMaxHosts, "host list '", text,
                "' has more than ", kMaxHosts, " hosts");
      std::vector<std::string> longer;
      for (const std::string& host : open)
        for (const std::string& number : numbers) longer.push_back(host + number);
      open = std::move(longer);
      i = close;
    } else {
      for (std::string& host : open) host += text[i];
    }
  }
  finish();
  return hosts;
}

std::string secret_from(std::string_view text) {
  std::ostringstream hex;
  for (uint64_t part = 0; part < 4; ++part)
    hex << std::hex << std::setw(16) << std::setfill('0') << mix(stable_hash(text), part);
  return hex.str();
}

void meet_at_first_worker(JobEnv& job) {
  if (job.store.empty()) job.store = job.worker_endpoints.at(0);
  if (job.job_id == JobEnv{}.job_id)
    job.job_id = "workers-" + secret_from(join(job.worker_endpoints, ",")).substr(0, 32);
}

std::map<std::string, std::string> whole_environment() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equal = text.find('=');
    if (equal == std::string_view::npos || equal == 0) continue;
    all.emplace(text.substr(0, equal), text.substr(equal + 1));
  }
  return all;
}

}  // namespace fleetx
