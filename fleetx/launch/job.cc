#include "fleetx/launch/job.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>

#include "fleetx/launch/guard.h"
#include "fleetx/launch/others.h"
#include "fleetx/launch/output.h"
#include "fleetx/launch/ports.h"
#include "fleetx/launch/report.h"
#include "fleetx/launch/supervisor.h"

namespace fleetx::launch {
namespace {

using Level = log::Level;

// The interpreter that the Python packages are built for: another may come first on PATH.
constexpr const char* kPython = FLEETX_PYTHON;

// Machines may be started one after the other by hand.
constexpr double kMeetingSeconds = 600;

// Workers that wait for one that failed raise within some hundredths of a second.
constexpr double kLastWordsSeconds = 0.25;

class Job {
 public:
  Job(const Options& options, const Environment& environment, const Stores& stores);
  int run();

 private:
  void make_log_dir() const;
  void write_endpoints() const;
  void bind_ports();
  void choose_secret();
  void meet();
  void meet_others();
  std::vector<std::string> endpoints_of_all();
  void open_store();
  void announce() const;
  std::vector<Task> tasks() const;
  Supervision supervision(bool terminal);
  bool speaks(const Process& process) const;
  std::string log_path(const Process& process) const;

  Options options_;
  Environment environment_;
  const Stores& stores_;
  Host host_ = host_facts();
  std::vector<std::string> argv_;
  std::string log_dir_;
  JobPlan asked_, plan_;  // as planned; with the ports of this attempt
  std::optional<Signals> signals_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<Others> others_;  // of several machines
  std::unique_ptr<ProcessStore> store_;
  std::vector<BoundPort> ports_;  // one per local process
  BoundPort store_port_;          // where it is fixed
  std::string secret_, store_address_;
  int restart_ = 0;
};

Job::Job(const Options& options, const Environment& environment, const Stores& stores)
    : options_(options), environment_(environment), stores_(stores) {
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
  std::vector<std::string> logs;
  for (const Process& process : plan_.processes)
    if (plan_.here(process)) logs.push_back(process.log_name());
  remove_old_logs(log_dir_, logs);
}

// Unlike write_file it does not wait for the disk, which may be busy for seconds.
void Job::write_endpoints() const {
  const std::string path = log_dir_ + "/endpoints.log";
  std::ofstream file(path);
  file << endpoints_log(plan_) << std::flush;
  check_arg(file.good(), "cannot write ", path, "; choose another folder with --log_dir");
}

void Job::bind_ports() {
  // What the last attempt held must be free before it is bound again.
  others_.reset();
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
    if (!plan_.here(process)) continue;
    ports_.push_back(bind_port(process.name(), process.endpoint));
    process.endpoint = ports_.back().endpoint;
  }
}

// One machine: random. Several: what the user gave all of them, or else something that the same
// command gives on each, which keeps mistakes out, but not an attacker.
void Job::choose_secret() {
  if (const auto given = find(environment_, job_var::kSecret)) {
    secret_ = *given;
  } else if (plan_.nodes == 1) {
    secret_ = random_hex(32);
  } else {
    secret_ = secret_from(str(plan_.job_id, " ", to_string(plan_.store), " ", plan_.nodes));
    if (restart_ == 0)
      log::warning("fleetrun",
                   "the job's secret follows from the command line; on a network you do "
                   "not trust, set FLEETX_JOB_SECRET to the same random hex digits on "
                   "every machine");
  }
}

std::vector<std::string> Job::endpoints_of_all() {
  try {
    return others_->gather("endpoints", to_csv(plan_.endpoints(JobRole::kWorker)));
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::kInvalidArgument) throw;
    fail(e.kind(), str("--rank=", plan_.node, ": another machine has this number already (",
                       e.what(), "); give each its own"));
  }
}

void Job::meet_others() {
  LinkOptions link{
      .where = asked_.store, .serve = plan_.node == 0, .node = plan_.node, .nodes = plan_.nodes};
  link.secret = secret_;
  link.job = str(plan_.job_id, "#", restart_);
  link.host = host_.name;
  link.again = restart_ > 0;
  link.seconds = kMeetingSeconds;
  try {
    others_ = std::make_unique<Others>(stores_, link);
  } catch (const Error& e) {
    if (plan_.node == 0 || e.kind() == Error::Kind::kTimeout) throw;
    fail(e.kind(), str(e.what(), "; start this machine with the --job_id, ",
                       options_.master ? "--master, --nnodes" : "addresses",
                       " and FLEETX_JOB_SECRET of the others"));
  }
  if (plan_.must_meet) {
    Meeting meeting;
    for (const std::string& csv : endpoints_of_all())
      meeting.endpoints.push_back(parse_endpoints("--master", csv, Port::kRequired, host_.resolve));
    plan_ = make_plan(options_, environment_, host_, meeting);
  } else {
    check_same_job(plan_, others_->gather("job", description_of(plan_)));
  }
  // The processes meet in a store of their own, which dies with the attempt.
  if (plan_.node == 0) open_store();
  store_address_ = others_->gather("store", store_address_)[0];
  if (plan_.node != 0)
    store_ = stores_.connect(
        parse_endpoints("the store", store_address_, Port::kRequired, host_.resolve)[0], secret_,
        plan_.job_id);
}

// The others may take their time: meanwhile the user can stop us.
void Job::meet() {
  store_address_.clear();
  if (plan_.roles_from_environment || !stores_.serve) return;
  choose_secret();
  if (plan_.nodes == 1) return open_store();
  log::info("fleetrun", "machine ", plan_.node, " of ", plan_.nodes, " meets the others at ",
            to_string(asked_.store), " (at most ", kMeetingSeconds, " s)");
  const Fd done(eventfd(0, EFD_CLOEXEC));
  std::exception_ptr error;
  std::jthread meeting([&] {
    try {
      meet_others();
    } catch (...) {
      error = std::current_exception();
    }
    const uint64_t one = 1;
    FLEETX_CHECK(write(done.get(), &one, sizeof one) > 0);
  });
  pollfd events[2] = {{done.get(), POLLIN, 0}, {signals_->fd(), POLLIN, 0}};
  while ((events[0].revents & POLLIN) == 0) {
    poll(events, 2, -1);
    signalfd_siginfo info{};
    if ((events[1].revents & POLLIN) == 0 || read(signals_->fd(), &info, sizeof info) < 0) continue;
    if (info.ssi_signo == SIGCHLD) continue;
    log::warning("fleetrun", "stopped by ", signal_name(static_cast<int>(info.ssi_signo)),
                 " before the other machines were there");
    std::_Exit(128 + static_cast<int>(info.ssi_signo));
  }
  meeting.join();
  if (error) std::rethrow_exception(error);
}

void Job::open_store() {
  // Several machines: the fixed port belongs to the launchers.
  const int port = plan_.nodes > 1 ? 0 : plan_.store.port;
  store_ = stores_.serve({plan_.store.ip, port}, secret_, plan_.job_id);
  store_address_ = to_string(store_->endpoint());
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
    Handover handover{store_address_, secret_, restart_, -1};
    if (port < ports_.size()) handover.listen_fd = ports_[port++].socket.get();
    Task task{process.name(), process.role, process.rank, {}, log_path(process), speaks(process)};
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
  for (const JobRole role : {JobRole::kServer, JobRole::kWorker, JobRole::kHeterWorker}) {
    const int count = plan_.local_count(role);
    for (const Process& process : plan_.processes) {
      if (process.role != role || !plan_.here(process) || process.local_rank != 0) continue;
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
            plan_.mode == Mode::kCollective ? "" : ", serverlog.*, heterlog.*");
}

Supervision Job::supervision(bool terminal) {
  Supervision how;
  how.signal_fd = signals_->fd();
  if (plan_.mode == Mode::kCollective) how.last_words_seconds = kLastWordsSeconds;
  how.grace_seconds = options_.grace.value_or(kGraceSeconds);
  how.host = host_.name;
  how.guard = guard_->pid();
  how.keep_old_log = restart_ > 0;
  how.terminal = terminal;
  how.on_started = [this] {
    for (BoundPort& port : ports_) port.socket.reset();
  };
  if (store_ && plan_.mode == Mode::kCollective)
    how.on_good_end = [this](const Task& task, pid_t pid) {
      store_->ended(task.rank, host_.name, pid);
    };
  if (store_)
    how.on_failure = [this](const Task& task, pid_t pid, const std::string& why) {
      const bool worker = task.role == JobRole::kWorker;
      store_->abort(worker ? task.rank : -1, host_.name, pid, str(task.name, ": ", why));
    };
  if (others_)
    how.elsewhere = Elsewhere{others_->news_fd(), [this] { return others_->read_news(); },
                              [this](const std::string& what, int code, bool by_user) {
                                others_->failed(what, code, by_user);
                              },
                              [this] { others_->workers_done(); }};
  return how;
}

int Job::run() {
  bind_ports();
  make_log_dir();
  signals_.emplace();
  guard_ = std::make_unique<Guard>();
  const int most_restarts = options_.max_restart.value_or(0);
  const bool terminal = isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  size_t speakers = 0;
  for (const Process& process : plan_.processes) speakers += plan_.here(process) && speaks(process);
  Console console({.prefixes = speakers > 1, .progress = terminal});
  for (;; ++restart_) {
    meet();
    if (restart_ == 0) announce();
    write_endpoints();
    const std::vector<Task> all = tasks();
    const Outcome outcome = supervise(all, supervision(terminal), console);
    const bool failed = outcome.code != 0;
    console.event(failed ? Level::kError : Level::kInfo, summary(plan_, outcome, log_dir_));
    if (!failed || outcome.by_user || restart_ >= most_restarts) return outcome.code;
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
