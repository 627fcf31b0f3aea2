#include "fleetx/launch/job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iostream>

#include "fleetx/base/file.h"
#include "fleetx/base/rng.h"
#include "fleetx/launch/guard.h"
#include "fleetx/launch/report.h"
#include "fleetx/launch/supervisor.h"

namespace fleetx::launch {
namespace {

using Level = log::Level;

// The interpreter that the Python packages are built for: another may come first on PATH.
constexpr const char* kPython = "/usr/bin/python3";

class Job {
 public:
  Job(const Options& options, const Environment& environment, const ServeStore& serve_store);
  int run();

 private:
  void make_log_dir() const;
  void bind_ports();
  void open_store();
  void announce() const;
  std::vector<Task> tasks() const;
  bool speaks(const Process& process) const;
  std::string log_path(const Process& process) const;

  Options options_;
  Environment environment_;
  const ServeStore& serve_store_;
  Host host_ = host_facts();
  std::vector<std::string> argv_;
  std::string log_dir_;
  JobPlan asked_, plan_;  // as planned; with the ports of this attempt
  Signals signals_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<Store> store_;
  std::vector<BoundPort> ports_;  // one per local process
  std::string secret_;
  int restart_ = 0;
};

Job::Job(const Options& options, const Environment& environment, const ServeStore& serve_store)
    : options_(options), environment_(environment), serve_store_(serve_store) {
  asked_ = make_plan(options_, environment_, host_);
  argv_ = command_line(options_.script, options_.args, options_.python.value_or(kPython),
                       find(environment_, "PATH").value_or("/usr/bin:/bin"));
  log_dir_ = options_.log_dir.value_or("log");
}

void Job::make_log_dir() const {
  std::error_code error;
  std::filesystem::create_directories(log_dir_, error);
  check_arg(!error && access(log_dir_.c_str(), W_OK | X_OK) == 0, "--log_dir: cannot write into '",
            log_dir_, "'", error ? str(" (", error.message(), ")") : "", "; choose another folder");
}

void Job::bind_ports() {
  plan_ = asked_;
  ports_.clear();
  if (plan_.roles_from_environment) return;
  for (Process& process : plan_.processes) {
    if (!plan_.here(process)) continue;
    ports_.push_back(bind_port(process.name(), process.endpoint));
    process.endpoint = ports_.back().endpoint;
  }
}

void Job::open_store() {
  if (plan_.roles_from_environment || !serve_store_) return;
  secret_ = random_hex(32);
  store_.reset();
  store_ = serve_store_(plan_.store, secret_);
}

bool Job::speaks(const Process& process) const { return process.local_rank == 0; }

std::string Job::log_path(const Process& process) const {
  return log_dir_ + "/" + process.log_name();
}

std::vector<Task> Job::tasks() const {
  std::vector<Task> tasks;
  size_t port = 0;
  for (const Process& process : plan_.processes) {
    if (!plan_.here(process)) continue;
    Handover handover{store_ ? store_->endpoint() : "", secret_, restart_, -1};
    if (port < ports_.size()) handover.listen_fd = ports_[port++].socket.get();
    Task task{process.name(), process.role, {}, log_path(process), speaks(process)};
    task.command.argv = argv_;
    task.command.environment = merged_environment(environment_, plan_, process, handover);
    task.command.environment.push_back(guard_->mark());
    task.command.listen_fd = handover.listen_fd;
    for (const Core& core : process.share.cores)
      task.command.cpus.insert(task.command.cpus.end(), core.cpus.begin(), core.cpus.end());
    tasks.push_back(std::move(task));
  }
  return tasks;
}

void Job::announce() const {
  std::cout << configuration_block(options_);
  for (const std::string& warning : plan_.warnings) log::warning("fleetrun", warning);
  std::cout << "launch train in CPU mode\n" << std::flush;
  const std::string job = str("job ", plan_.job_id);
  for (const JobRole role : {JobRole::kServer, JobRole::kWorker, JobRole::kHeterWorker}) {
    const int count = plan_.local_count(role);
    for (const Process& process : plan_.processes) {
      if (process.role != role || !plan_.here(process) || process.local_rank != 0) continue;
      const Variables variables =
          environment_of(plan_, process, {store_ ? store_->endpoint() : "", "", restart_, -1});
      const std::string of =
          plan_.mode == Mode::kCollective ? "processes" : str(to_string(role), " processes");
      log::info("fleetrun", "Local start ", count, " ", of,
                ". First process distributed environment info (Only For Debug):\n",
                environment_table(shown_variables(plan_, variables)));
    }
  }
  log::info("fleetrun", slots_line(plan_, environment_), "; logs: ", log_dir_, "/workerlog.*",
            plan_.mode == Mode::kCollective ? "" : ", serverlog.*, heterlog.*");
}

int Job::run() {
  bind_ports();
  make_log_dir();
  guard_ = std::make_unique<Guard>();
  const int most_restarts = options_.max_restart.value_or(0);
  const bool terminal = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  size_t speakers = 0;
  for (const Process& process : plan_.processes) speakers += plan_.here(process) && speaks(process);
  Console console({.prefixes = speakers > 1, .progress = terminal});
  for (;; ++restart_) {
    open_store();
    if (restart_ == 0) announce();
    write_file(log_dir_ + "/endpoints.log", endpoints_log(plan_));
    std::vector<Task> all = tasks();
    Supervision how;
    how.signal_fd = signals_.fd();
    how.grace_seconds = options_.grace.value_or(kGraceSeconds);
    how.host = host_.name;
    how.guard = guard_->pid();
    how.keep_old_log = restart_ > 0;
    how.terminal = terminal;
    how.on_started = [this] {
      for (BoundPort& port : ports_) port.socket.reset();
    };
    const Outcome outcome = supervise(all, how, console);
    const bool failed = outcome.code != 0;
    console.event(failed ? Level::kError : Level::kInfo, summary(plan_, outcome, log_dir_));
    if (!failed || outcome.by_user || restart_ >= most_restarts) return outcome.code;
    console.event(Level::kWarning, "restarting the job: attempt ", restart_ + 2, " of ",
                  most_restarts + 1, " (--max_restart=", most_restarts, ")");
    bind_ports();
  }
}

}  // namespace

int run_job(Options options, const ServeStore& serve_store) {
  const Environment environment = whole_environment();
  take_defaults_from(environment, options);
  return Job(options, environment, serve_store).run();
}

}  // namespace fleetx::launch
