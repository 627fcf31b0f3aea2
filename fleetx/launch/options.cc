#include "fleetx/launch/options.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/names.h"

namespace fleetx::launch {
namespace {

using Names = std::vector<std::string>;

template <class T>
void note(Names& names, const char* flag, const std::optional<T>& value) {
  if (value) names.push_back(flag);
}

Names collective_flags(const Options& o) {
  Names names;
  note(names, "--gpus", o.gpus);
  note(names, "--nproc_per_node", o.nproc_per_node);
  note(names, "--ips", o.ips);
  note(names, "--master", o.master);
  note(names, "--nnodes", o.nnodes);
  note(names, "--rank", o.rank);
  return names;
}

Names server_flags(const Options& o) {
  Names names;
  note(names, "--servers", o.servers);
  note(names, "--workers", o.workers);
  note(names, "--heter_workers", o.heter_workers);
  note(names, "--server_num", o.server_num);
  note(names, "--worker_num", o.worker_num);
  note(names, "--heter_worker_num", o.heter_worker_num);
  note(names, "--http_port", o.http_port);
  note(names, "--snapshot_interval", o.snapshot_interval);
  note(names, "--snapshot_dir", o.snapshot_dir);
  note(names, "--replicas", o.replicas);
  note(names, "--server_memory", o.server_memory);
  note(names, "--server_disk", o.server_disk);
  return names;
}

void check_range(const char* flag, const std::optional<int>& value, int least, int most) {
  check_arg(!value || (*value >= least && *value <= most), flag, "=", value.value_or(0),
            ": give a number from ", least, " to ", most);
}

// A larger number is most likely a typing error that would overload the machine.
constexpr int kMaxProcesses = 4096;

}  // namespace

std::optional<std::string> find(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

int whole_number(const std::string& what, const std::string& text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool ok = error == std::errc{} && end == text.data() + text.size();
  check_arg(ok && number >= least && number <= most, what, "='", text, "': expected a whole number",
            most == std::numeric_limits<int>::max() ? str(" from ", least)
                                                    : str(" from ", least, " to ", most));
  return number;
}

void take_defaults_from(const Environment& environment, Options& o) {
  constexpr int kAny = std::numeric_limits<int>::max();
  const auto text = [&](const char* name, std::optional<std::string>& field) {
    if (!field) field = find(environment, name);
  };
  const auto number = [&](const char* name, std::optional<int>& field, int least) {
    if (const auto value = find(environment, name); value && !field)
      field = whole_number(str("environment variable ", name), *value, least, kAny);
  };
  text("PADDLE_RUN_MODE", o.run_mode);
  text("PADDLE_JOB_ID", o.job_id);
  text("PADDLE_LOG_DIR", o.log_dir);
  number("PADDLE_MAX_RESTART", o.max_restart, 0);
  if (!server_flags(o).empty()) {
    number(job_var::kReplicas, o.replicas, 1);
    text(job_var::kServerMemory, o.server_memory);
    text(job_var::kServerDisk, o.server_disk);
    return;
  }
  number("PADDLE_NPROC_PER_NODE", o.nproc_per_node, 1);
  if (o.ips) return;
  text("PADDLE_MASTER", o.master);
  text("PADDLE_NNODES", o.nnodes);
  number("PADDLE_RANK", o.rank, 0);
  if (!o.master) return;
  // Kubernetes numbers the pods of an indexed job, srun the machines of a step.
  number("JOB_COMPLETION_INDEX", o.rank, 0);
  if (!find(environment, "SLURM_STEP_ID")) return;
  text("SLURM_STEP_NUM_NODES", o.nnodes);
  number("SLURM_NODEID", o.rank, 0);
}

std::optional<Mode> mode_of(const Options& o) {
  const bool heter = o.run_mode && *o.run_mode == "ps-heter";
  check_arg(
      !o.heter_workers && !o.heter_worker_num && !heter, "heter workers (",
      heter             ? "--run_mode=ps-heter"
      : o.heter_workers ? "--heter_workers"
                        : "--heter_worker_num",
      ") are not built: they compute a part of the network on other devices than the workers, "
      "and all processes of FleetX compute on CPUs; start the job with servers and workers");
  const Names collective = collective_flags(o), server = server_flags(o);
  check_arg(collective.empty() || server.empty(), join(collective, ", "),
            " start a collective job, ", join(server, ", "),
            " a parameter-server job; give flags of one kind only");
  if (o.run_mode) {
    const std::string& mode = *o.run_mode;
    const bool ps = mode == "ps";
    check_arg(ps || mode == "collective", "--run_mode='", mode, "': choose collective or ps");
    check_arg(!ps || collective.empty(), "--run_mode=", mode, " does not go with ",
              join(collective, ", "), ", which start a collective job");
    check_arg(ps || server.empty(), "--run_mode=collective does not go with ", join(server, ", "),
              ", which start a parameter-server job");
    return ps ? Mode::kParameterServer : Mode::kCollective;
  }
  if (!server.empty()) return Mode::kParameterServer;
  if (!collective.empty()) return Mode::kCollective;
  return std::nullopt;
}

void check(const Options& o) {
  check_range("--nproc_per_node", o.nproc_per_node, 1, kMaxProcesses);
  check_range("--server_num", o.server_num, 1, kMaxProcesses);
  check_range("--worker_num", o.worker_num, 1, kMaxProcesses);
  check_range("--http_port", o.http_port, 1, 65535);
  check_range("--rank", o.rank, -1, 65535);
  check_range("--max_restart", o.max_restart, 0, 1000);
  check_range("--replicas", o.replicas, 1, 2);
  check_arg(o.replicas != 2 || !o.snapshot_interval,
            "--replicas=2 and --snapshot_interval are two ways to outlive a server; give one");
  if (o.server_memory) parse_bytes("--server_memory", *o.server_memory);
  check_arg(!o.server_disk || (!o.server_disk->empty() && o.server_memory),
            "--server_disk is for rows beyond a memory budget; give --server_memory=BYTES, too");
  check_arg(!o.grace || (*o.grace >= 0 && *o.grace <= 3600), "--grace=", o.grace.value_or(0),
            ": give seconds from 0 to 3600");
  check_arg(!o.snapshot_interval || (*o.snapshot_interval > 0 && *o.snapshot_interval <= 1e6),
            "--snapshot_interval=", o.snapshot_interval.value_or(0),
            ": give seconds, more than 0 and at most 1000000");
  check_arg(
      !o.snapshot_dir || (!o.snapshot_dir->empty() && o.snapshot_interval),
      "--snapshot_dir is where servers write snapshots; give --snapshot_interval=SECONDS, too");
  check_arg(!o.job_id || o.job_id->find_first_of(" \t\n/,") == std::string::npos, "--job_id='",
            o.job_id.value_or(""), "': a job's name has no spaces, commas or slashes");
  check_arg(!(o.ips && (o.master || o.nnodes || o.rank)),
            "--ips lists the machines already; leave out --master, --nnodes and --rank");
  check_arg(o.master || o.nnodes.value_or("1") == "1", "--nnodes=", o.nnodes.value_or(""),
            " needs --master=ip:port, where the machines meet (or list them with --ips)");
  check_arg(o.master || !o.rank, "--rank is the number of this machine in a job with --master");
  check_arg(!o.log_dir || !o.log_dir->empty(), "--log_dir is empty; name a folder");
  if (mode_of(o) != Mode::kParameterServer) return;
  check_arg(o.server_num || o.servers,
            "a parameter-server job needs servers: give --server_num=N to start N here, or "
            "--servers=ip:port,...");
  check_arg(o.worker_num || o.workers,
            "a parameter-server job needs workers: give --worker_num=N to start N here, or "
            "--workers=ip:port,...");
}

std::vector<std::pair<std::string, std::string>> describe(const Options& o) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto text = [&](const char* name, const std::optional<std::string>& value,
                        const char* otherwise) {
    lines.emplace_back(name, value.value_or(otherwise));
  };
  const auto number = [&](const char* name, const std::optional<int>& value,
                          const char* otherwise = "None") {
    lines.emplace_back(name, value ? str(*value) : otherwise);
  };
  text("gpus", o.gpus, "None");
  number("nproc_per_node", o.nproc_per_node);
  text("ips", o.ips, o.master ? "None" : "127.0.0.1");
  text("master", o.master, "None");
  text("nnodes", o.nnodes, "1");
  number("rank", o.rank, "-1");
  text("servers", o.servers, "");
  text("workers", o.workers, "");
  text("heter_workers", o.heter_workers, "");
  number("server_num", o.server_num);
  number("worker_num", o.worker_num);
  number("heter_worker_num", o.heter_worker_num);
  number("http_port", o.http_port);
  text("run_mode", o.run_mode, "None");
  text("log_dir", o.log_dir, "log");
  text("job_id", o.job_id, "default");
  text("python", o.python, "None");
  number("max_restart", o.max_restart, mode_of(o) == Mode::kParameterServer ? "None" : "0");
  lines.emplace_back("grace", str(o.grace.value_or(kGraceSeconds)));
  lines.emplace_back("snapshot_interval", o.snapshot_interval ? str(*o.snapshot_interval) : "None");
  text("snapshot_dir", o.snapshot_dir, "None");
  number("replicas", o.replicas, "1");
  text("server_memory", o.server_memory, "None");
  text("server_disk", o.server_disk, "None");
  Names quoted;
  for (const std::string& argument : o.args) quoted.push_back(str("'", argument, "'"));
  lines.emplace_back("training_script", o.script);
  lines.emplace_back("training_script_args", str("[", join(quoted, ", "), "]"));
  std::ranges::sort(lines);
  return lines;
}

}  // namespace fleetx::launch
