#include "fleetx/launch/job.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

#include "fleetx/base/fd.h"
#include "fleetx/base/interrupt.h"
#include "fleetx/launch/output.h"
#include "fleetx/launch/peer_launchers.h"
#include "fleetx/launch/ports.h"
#include "fleetx/launch/report.h"
#include "fleetx/launch/supervisor.h"
#include "fleetx/launch/watchdog.h"

namespace fleetx::launch {
namespace {

using Level = log::Level;

// The interpreter that the Python packages are built for: another may come first on PATH.
constexpr const char* kPython = FLEETX_PYTHON;

// Users may start the machines one after the other by hand.
constexpr double kRendezvousSeconds = 600;

// After a failure, the time for the other workers to log their errors before SIGTERM. They get the
// failure from the store within some hundredths of a second.
constexpr double kErrorLogSeconds = 0.25;

// A signal from the user while the machines of the job meet.
struct Stopped {
  int signal;
};

void throw_if_stopped(const Signals& signals) {
  signalfd_siginfo info{};
  while (read(signals.fd(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD) throw Stopped{static_cast<int>(info.ssi_signo)};
}

class Job {
 public:
  Job(const Options& options, const Environment& environment, const Stores& stores);
  ~Job();
  Job(const Job&) = delete;
  int run();

 private:
  int run_attempts();
  void make_log_dir() const;
  void write_endpoints() const;
  void write_secret();
  void bind_ports();
  void choose_secret();
  void rendezvous();
  void rendezvous_with_peers();
  std::vector<std::string> endpoints_of_all(PeerLaunchers& peers);
  void open_store();
  void listen_for_mode();
  void announce() const;
  std::vector<Task> tasks() const;
  Command command_of(const Process& process, int listen_fd, int rejoin) const;
  Reaction on_death(const Task& task, int restarts, bool servers_ended);
  bool has_all(int server) const;
  Command start_again(const Task& task, int restarts);
  std::string snapshot_of(int server) const;
  void remove_old_snapshots() const;
  Supervision supervision(bool terminal);
  bool show_output(const Process& process) const;
  std::string log_path(const Process& process) const;

  Options options_;
  Environment environment_;
  const Stores& stores_;
  Host host_ = host_facts();
  std::vector<std::string> argv_;
  std::string log_dir_;
  JobPlan asked_, plan_;  // as planned; with the ports of this attempt
  std::optional<Signals> signals_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<PeerLaunchers> peers_;  // of several machines
  std::unique_ptr<ProcessStore> store_;
  std::vector<BoundPort> ports_;  // one per local process
  BoundPort store_port_;          // where it is fixed
  std::string secret_, secret_file_, store_address_;
  int restart_ = 0;
  std::map<int, int> server_deaths_;  // of servers on this machine: how often each has died
  double silence_ = 4;                // seconds, of a process of a job with servers
};

Job::Job(const Options& options, const Environment& environment, const Stores& stores)
    : options_(options), environment_(environment), stores_(stores) {
  asked_ = make_plan(options_, environment_, host_);
  argv_ = command_line(options_.script, options_.args, options_.python.value_or(kPython),
                       find(environment_, "PATH").value_or("/usr/bin:/bin"));
  log_dir_ = options_.log_dir.value_or("log");
  silence_ = JobEnv::silence_from(
      [&](std::string_view name) { return find(environment_, std::string(name)); });
}

void Job::make_log_dir() const {
  std::error_code error;
  std::filesystem::create_directories(log_dir_, error);
  check_arg(!error && access(log_dir_.c_str(), W_OK | X_OK) == 0, "--log_dir: cannot write into '",
            log_dir_, "'", error ? str(" (", error.message(), ")") : "", "; choose another folder");
  std::vector<std::string> logs;
  for (const Process& process : plan_.processes)
    if (plan_.is_local(process)) logs.push_back(process.log_name());
  remove_old_logs(log_dir_, logs);
}

// Unlike write_file it does not wait for the disk, which may be busy for seconds.
void Job::write_endpoints() const {
  const std::string path = log_dir_ + "/endpoints.log";
  std::ofstream file(path);
  file << endpoints_log(plan_) << std::flush;
  check_arg(file.good(), "cannot write ", path, "; choose another folder with --log_dir");
}

// Nobody else can read it.
void Job::write_secret() {
  if (plan_.mode != Mode::kParameterServer || plan_.roles_from_environment) return;
  const std::string path = log_dir_ + "/" + kSecretFile;
  std::filesystem::remove(path);
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  check_arg(file && write(file.get(), secret_.data(), secret_.size()) ==
                        static_cast<ssize_t>(secret_.size()),
            "cannot write ", path, "; choose another folder with --log_dir");
  secret_file_ = path;
}

Job::~Job() {
  if (!secret_file_.empty()) unlink(secret_file_.c_str());
}

void Job::bind_ports() {
  // What the last attempt held must be free before it is bound again.
  peers_.reset();
  store_.reset();
  ports_.clear();
  store_port_ = {};
  plan_ = asked_;
  if (plan_.roles_from_environment) return;
  if (plan_.node == 0 && plan_.store.port != 0) {
    store_port_ = bind_port("the store", plan_.store);
    store_port_.socket.reset();  // the store binds it itself; the claim keeps other jobs away
  }
  for (Process& process : plan_.processes) {
    if (!plan_.is_local(process)) continue;
    ports_.push_back(bind_port(process.name(), process.endpoint));
    process.endpoint = ports_.back().endpoint;
  }
}

// One machine: random. Several: FLEETX_JOB_SECRET, or else derived from the command line, which
// protects from mistakes but not from attackers.
void Job::choose_secret() {
  if (const auto given = find(environment_, job_var::kSecret)) {
    secret_ = *given;
  } else if (plan_.nodes == 1) {
    secret_ = random_hex(32);
  } else {
    secret_ = secret_from(str(plan_.job_id, " ", to_string(plan_.store), " ", plan_.nodes));
    if (restart_ == 0)
      log::warning(
          "fleetrun",
          "the job's secret is derived from the command line; on an untrusted network, set "
          "FLEETX_JOB_SECRET to the same random hex digits on every machine");
  }
}

std::vector<std::string> Job::endpoints_of_all(PeerLaunchers& peers) {
  try {
    return peers.gather("endpoints", to_csv(plan_.endpoints(JobRole::kWorker)));
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::kInvalidArgument) throw;
    fail(e.kind(), str("--rank=", plan_.node, ": another machine has this number already (",
                       e.what(), "); give each its own"));
  }
}

void Job::rendezvous_with_peers() {
  LinkOptions link{
      .where = asked_.store, .serve = plan_.node == 0, .node = plan_.node, .nodes = plan_.nodes};
  link.secret = secret_;
  link.job = str(plan_.job_id, "#", restart_);
  link.host = host_.name;
  link.retry_connect = restart_ > 0;
  link.seconds = kRendezvousSeconds;
  // Local until the end: an exception closes the connection, which tells the peers to stop waiting.
  std::unique_ptr<PeerLaunchers> peers;
  try {
    peers = std::make_unique<PeerLaunchers>(stores_, link);
  } catch (const Error& e) {
    if (plan_.node == 0 || e.kind() == Error::Kind::kTimeout) throw;
    fail(e.kind(), str(e.what(), "; start this machine with the --job_id, ",
                       options_.master ? "--master, --nnodes" : "addresses",
                       " and FLEETX_JOB_SECRET of the others"));
  }
  if (plan_.needs_rendezvous) {
    BoundEndpoints bound;
    for (const std::string& csv : endpoints_of_all(*peers))
      bound.endpoints.push_back(parse_endpoints("--master", csv, Port::kRequired, host_.resolve));
    plan_ = make_plan(options_, environment_, host_, bound);
  } else {
    check_same_job(plan_, peers->gather("job", description_of(plan_)));
  }
  // The processes use a store of their own, which ends with the attempt.
  if (plan_.node == 0) open_store();
  store_address_ = peers->gather("store", store_address_)[0];
  if (plan_.node != 0)
    store_ = stores_.connect(
        parse_endpoints("the store", store_address_, Port::kRequired, host_.resolve)[0], secret_,
        plan_.job_id);
  peers_ = std::move(peers);
}

// Waits for the other machines; the user can stop it by a signal.
void Job::rendezvous() {
  store_address_.clear();
  if (plan_.roles_from_environment || !stores_.serve) return;
  choose_secret();
  if (plan_.nodes == 1) {
    open_store();
    return listen_for_mode();
  }
  log::info("fleetrun", "machine ", plan_.node, " of ", plan_.nodes, " waits for its peers at ",
            to_string(asked_.store), " (at most ", kRendezvousSeconds, " s)");
  const InterruptCheck check([this] { throw_if_stopped(*signals_); });
  rendezvous_with_peers();
  listen_for_mode();
}

void Job::listen_for_mode() {
  if (plan_.mode == Mode::kParameterServer) store_->listen_for_mode();
}

void Job::open_store() {
  // With several machines the fixed port is that of the launchers' store.
  const int port = plan_.nodes > 1 ? 0 : plan_.store.port;
  store_ = stores_.serve({plan_.store.ip, port}, secret_, plan_.job_id);
  store_address_ = to_string(store_->endpoint());
}

bool Job::show_output(const Process& process) const { return process.local_rank == 0; }

std::string Job::log_path(const Process& process) const {
  return log_dir_ + "/" + process.log_name();
}

std::vector<Task> Job::tasks() const {
  std::vector<Task> tasks;
  size_t port = 0;
  for (const Process& process : plan_.processes) {
    if (!plan_.is_local(process)) continue;
    const int listen_fd = port < ports_.size() ? ports_[port++].socket.get() : -1;
    tasks.push_back({process.name(), process.role, process.rank, command_of(process, listen_fd, 0),
                     log_path(process), show_output(process)});
  }
  return tasks;
}

Command Job::command_of(const Process& process, int listen_fd, int rejoin) const {
  ProcessSetup setup{store_address_, secret_, restart_, listen_fd, rejoin};
  setup.replicas = options_.replicas.value_or(1);
  setup.server_memory = options_.server_memory.value_or("");
  if (options_.server_disk) setup.server_disk = std::filesystem::absolute(*options_.server_disk);
  if (options_.snapshot_interval) {
    setup.snapshot = snapshot_of(process.rank);
    setup.snapshot_seconds = *options_.snapshot_interval;
  }
  Command command{.argv = argv_,
                  .environment = merged_environment(environment_, plan_, process, setup),
                  .cpus = {},
                  .listen_fd = listen_fd};
  command.environment.push_back(watchdog_->mark());
  for (const Core& core : process.share.cores)
    command.cpus.insert(command.cpus.end(), core.cpus.begin(), core.cpus.end());
  return command;
}

// --- processes that are started again ------------------------------------------------------------

std::string Job::snapshot_of(int server) const {
  const std::string folder = options_.snapshot_dir.value_or(log_dir_ + "/snapshots");
  return std::filesystem::absolute(folder) / str("server.", server);
}

// A snapshot of another run must not be taken for one of this job.
void Job::remove_old_snapshots() const {
  if (!options_.snapshot_interval) return;
  std::error_code error;
  const auto folder = std::filesystem::path(snapshot_of(0)).parent_path();
  std::filesystem::create_directories(folder, error);
  check_arg(!error && access(folder.c_str(), W_OK | X_OK) == 0,
            "--snapshot_dir: cannot write into ", folder.string(), "; choose another folder");
  for (const Process& process : plan_.processes)
    if (plan_.is_local(process) && process.role == JobRole::kServer)
      std::filesystem::remove(snapshot_of(process.rank), error);
}

// Whether a server, and the copy that it keeps, have all that they should: it has not died, or has
// come back and was given it.
bool Job::has_all(int server) const {
  const auto died = server_deaths_.find(server);
  if (died == server_deaths_.end()) return true;
  return store_ && store_->has(copied_key(server, died->second));
}

Reaction Job::on_death(const Task& task, int restarts, bool servers_ended) {
  bool has_copy = false, kept_last = false;
  if (task.role == JobRole::kServer && options_.replicas == 2) {
    const auto servers = static_cast<int>(plan_.endpoints(JobRole::kServer).size());
    has_copy = has_all((task.rank + 1) % servers);
    kept_last = !has_all((task.rank + servers - 1) % servers);
    server_deaths_[task.rank] = restarts + 1;
  }
  return react({.mode = store_ ? store_->mode() : std::nullopt,
                .role = task.role,
                .restarts = restarts,
                .max_restart = options_.max_restart,
                .has_snapshot = task.role == JobRole::kServer && options_.snapshot_interval &&
                                std::filesystem::exists(snapshot_of(task.rank)),
                .servers_ended = servers_ended,
                .has_copy = has_copy,
                .kept_last = kept_last});
}

Command Job::start_again(const Task& task, int restarts) {
  size_t port = 0;
  for (const Process& process : plan_.processes) {
    if (!plan_.is_local(process)) continue;
    BoundPort& bound = ports_[port++];
    if (process.role != task.role || process.rank != task.rank) continue;
    bound.socket = bind_again(task.name, bound);
    return command_of(process, bound.socket.get(), restarts);
  }
  FLEETX_CHECK(false, task.name, " is not of this machine");
  return {};
}

void Job::announce() const {
  std::cout << configuration_block(options_);
  for (const std::string& warning : plan_.warnings) log::warning("fleetrun", warning);
  std::cout << "launch train in CPU mode\n" << std::flush;
  for (const JobRole role : {JobRole::kServer, JobRole::kWorker}) {
    const int count = plan_.local_count(role);
    for (const Process& process : plan_.processes) {
      if (process.role != role || !plan_.is_local(process) || process.local_rank != 0) continue;
      const Variables variables =
          environment_of(plan_, process, {store_address_, "", restart_, -1});
      if (variables.empty()) continue;
      const std::string of =
          plan_.mode == Mode::kCollective ? "processes" : str(to_string(role), " processes");
      log::info("fleetrun", "Local start ", count, " ", of,
                ". First process distributed environment info (Only For Debug):\n",
                environment_table(shown_variables(plan_, variables)));
    }
  }
  log::info("fleetrun", slots_line(plan_, environment_), "; logs: ", log_dir_, "/workerlog.*",
            plan_.mode == Mode::kCollective ? "" : ", serverlog.*");
}

Supervision Job::supervision(bool terminal) {
  Supervision how;
  how.signal_fd = signals_->fd();
  if (plan_.mode == Mode::kCollective) how.error_log_seconds = kErrorLogSeconds;
  how.grace_seconds = options_.grace.value_or(kGraceSeconds);
  how.host = host_.name;
  how.watchdog = watchdog_->pid();
  how.keep_old_log = restart_ > 0;
  how.terminal = terminal;
  how.on_started = [this] {
    for (BoundPort& port : ports_) port.socket.reset();
  };
  if (store_ && plan_.mode == Mode::kCollective)
    how.on_success = [this](const Task& task, pid_t pid) {
      store_->ended(task.rank, host_.name, pid);
    };
  if (store_)
    how.on_failure = [this](const Task& task, pid_t pid, const std::string& why) {
      const bool worker = task.role == JobRole::kWorker;
      store_->abort(worker ? task.rank : -1, host_.name, pid, str(task.name, ": ", why));
    };
  if (store_ && plan_.mode == Mode::kCollective)
    how.is_consequence = [this](const Task& task) {
      const std::optional<int> cause = store_->failed_worker();
      if (!cause || *cause == task.rank) return false;
      return std::ranges::none_of(plan_.processes, [&](const Process& p) {
        return plan_.is_local(p) && p.role == JobRole::kWorker && p.rank == *cause;
      });
    };
  if (plan_.mode == Mode::kParameterServer && !plan_.roles_from_environment) {
    how.on_death = [this](const Task& task, int restarts, bool servers_ended) {
      return on_death(task, restarts, servers_ended);
    };
    how.start_again = [this](const Task& task, int restarts) {
      return start_again(task, restarts);
    };
    // Before the others lose patience and end with errors of their own: who is stopped is named.
    how.stopped_seconds = 0.8 * silence_;
  }
  if (peers_)
    how.peers =
        PeerHooks{peers_->event_fd(), [this] { return peers_->next_event(); },
                  [this](const std::string& what, int code, bool by_user) {
                    peers_->report_failure(what, code, by_user);
                  },
                  [this](const std::string& what, int code) { peers_->workers_done(what, code); }};
  return how;
}

int Job::run() {
  bind_ports();
  make_log_dir();
  signals_.emplace();
  watchdog_ = std::make_unique<Watchdog>();
  try {
    return run_attempts();
  } catch (const Stopped& stopped) {
    log::warning("fleetrun", "stopped by ", signal_name(stopped.signal),
                 " while waiting for the other machines");
    return 128 + stopped.signal;
  }
}

int Job::run_attempts() {
  const int most_restarts = options_.max_restart.value_or(0);
  const bool terminal = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  size_t shown = 0;
  for (const Process& process : plan_.processes)
    shown += plan_.is_local(process) && show_output(process);
  Console console({.prefixes = shown > 1, .progress = terminal});
  for (;; ++restart_) {
    rendezvous();
    if (restart_ == 0) announce();
    write_endpoints();
    write_secret();
    remove_old_snapshots();
    server_deaths_.clear();
    const std::vector<Task> all = tasks();
    const Outcome outcome = supervise(all, supervision(terminal), console);
    const bool failed = outcome.code != 0;
    console.event(failed ? Level::kError : Level::kInfo, summary(plan_, outcome, log_dir_));
    if (!failed || outcome.by_user || outcome.went_on || restart_ >= most_restarts)
      return outcome.code;
    console.event(Level::kWarning, "restarting the job: attempt ", restart_ + 2, " of ",
                  most_restarts + 1, " (--max_restart=", most_restarts, ")");
    bind_ports();
  }
}

}  // namespace

int run_job(Options options, const Stores& stores) {
  const Environment environment = whole_environment();
  take_defaults_from(environment, options);
  return Job(options, environment, stores).run();
}

}  // namespace fleetx::launch
