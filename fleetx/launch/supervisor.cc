#include "fleetx/launch/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>

#include "fleetx/base/error.h"
#include "fleetx/launch/output.h"
#include "fleetx/launch/report.h"
#include "fleetx/launch/watchdog.h"

namespace fleetx::launch {
namespace {

using Clock = std::chrono::steady_clock;
using Level = log::Level;

constexpr double kSoon = 1e-3;  // seconds; zero would disarm a timer

// How long a failure that follows from another one waits for the report of that.
constexpr double kCauseSeconds = 3;

// For servers to come to their end after the last worker, before SIGTERM.
constexpr double kServersEndSeconds = 1;

// How often processes that are stopped are looked for.
constexpr double kLookSeconds = 0.25;

enum Source : uint64_t {
  kSignal,
  kStopLater,
  kGrace,
  kTick,
  kPeer,
  kLook,
  kCause,
  kFirstChild = 16
};

// 'R', 'S', 'T' (stopped by a signal), ... of /proc/PID/stat, which begins "PID (name) STATE".
char state_of(pid_t pid) {
  std::ifstream file(str("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end + 2 < line.size() ? line[name_end + 2] : '?';
}

class Supervisor {
 public:
  Supervisor(const Supervision& how, Console& console);
  ~Supervisor() { kill_descendants(how_.watchdog); }
  Outcome run(const std::vector<Task>& tasks);

 private:
  // kFinishing: servers are being stopped. kStopping: all processes are.
  enum class Phase { kRunning, kFinishing, kStopping };
  struct Running {
    const Task* task;
    Child child;
    Output output;
    Clock::time_point started;
    bool ended = true, killed = false;  // initially: not started
    int restarts = 0;
    std::optional<Clock::time_point> stopped{};  // since when
    bool killed_as_stopped = false, succeeded = false;
  };

  void watch(int fd, uint64_t source);
  void start(const std::vector<Task>& tasks);
  void start(Running& process);
  Output open_output(const Task& task, bool keep_old) const;
  void handle(uint64_t source);
  void on_exit(Running& process);
  void finish();
  void on_failure(Running& process, const EndedProcess& end);
  void decide(const Task& task, const EndedProcess& end);
  bool lives_on(Running& process, const EndedProcess& end);
  bool start_again(Running& process);
  bool a_server_ended() const;
  std::string what_of(const EndedProcess& end) const;
  void look_for_stopped();
  void on_signal();
  void on_peer_event();
  void on_grace();
  void stop_after_failure(const std::string& whom);
  void on_stop_later();
  void on_cause_timeout();
  void show_progress();
  void signal_all(int signal);
  void stop(Phase phase, int signal);
  int alive() const;
  bool workers_done() const;
  double since(Clock::time_point time) const {
    return std::chrono::duration<double>(Clock::now() - time).count();
  }
  void set_timer(const Fd& timer, double seconds, double interval) const;

  const Supervision& how_;
  Console& console_;
  Fd epoll_, stop_later_, grace_, tick_, look_, cause_;
  std::vector<Running> processes_;
  Phase phase_ = Phase::kRunning;
  Outcome outcome_;
  int restarts_ = 0;
  int replaced_ = 0;  // servers, by their copies
  // A failure that waits for the report of the one that it follows from.
  std::optional<std::pair<const Task*, EndedProcess>> consequence_;
  bool a_worker_succeeded_ = false;
  std::optional<std::pair<std::string, int>> given_up_;  // the first one: what, exit code
  Clock::time_point begin_ = Clock::now();
  long oom_kills_ = count_oom_kills(how_.vmstat);
};

Supervisor::Supervisor(const Supervision& how, Console& console)
    : how_(how),
      console_(console),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_later_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      grace_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      tick_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      look_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      cause_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  FLEETX_CHECK(epoll_ && stop_later_ && grace_ && tick_ && look_ && cause_, std::strerror(errno));
  adopt_orphans();
  watch(how_.signal_fd, kSignal);
  watch(stop_later_.get(), kStopLater);
  watch(grace_.get(), kGrace);
  watch(tick_.get(), kTick);
  watch(look_.get(), kLook);
  watch(cause_.get(), kCause);
  if (how_.stopped_seconds > 0) set_timer(look_, kLookSeconds, kLookSeconds);
  if (how_.peers) watch(how_.peers->event_fd, kPeer);
  if (how_.terminal) set_timer(tick_, 1, 1);
}

void Supervisor::watch(int fd, uint64_t source) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = source;
  FLEETX_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0, std::strerror(errno));
}

void Supervisor::start(Running& process) {
  const uint64_t source = kFirstChild + 2 * static_cast<uint64_t>(&process - processes_.data());
  const Command& first = process.task->command;
  process.child =
      spawn(process.restarts == 0 ? first : how_.start_again(*process.task, process.restarts),
            process.output.for_child());
  process.output.started();
  process.started = Clock::now();
  process.ended = process.killed = process.killed_as_stopped = false;
  process.stopped.reset();
  watch(process.child.pidfd.get(), source);
  if (process.output.reader() >= 0) watch(process.output.reader(), source + 1);
}

Output Supervisor::open_output(const Task& task, bool keep_old) const {
  const auto kind = !task.show_output ? Output::Kind::kFile
                    : how_.terminal   ? Output::Kind::kTerminal
                                      : Output::Kind::kPipe;
  return Output(task.log_path, keep_old, kind);
}

void Supervisor::start(const std::vector<Task>& tasks) {
  // Open all logs before anything runs: one that cannot be written is bad input.
  for (const Task& task : tasks)
    processes_.push_back({&task, {}, open_output(task, how_.keep_old_log), {}});
  for (Running& process : processes_) start(process);
  if (how_.on_started) how_.on_started();
  if (how_.peers && workers_done()) how_.peers->report_workers_done("", 0);
}

Outcome Supervisor::run(const std::vector<Task>& tasks) {
  start(tasks);
  while (alive() > 0 || (how_.peers && phase_ == Phase::kRunning)) {
    epoll_event events[64];
    const int count = epoll_wait(epoll_.get(), events, 64, -1);
    for (int i = 0; i < count; ++i) handle(events[i].data.u64);
  }
  outcome_.seconds = since(begin_);
  if (given_up_ && outcome_.code == 0) {
    outcome_.code = given_up_->second;
    outcome_.verdict = given_up_->first;
    if (how_.peers || a_worker_succeeded_)
      outcome_.verdict += "; the job came to its end without it";
    outcome_.went_on = true;
  }
  if (outcome_.verdict.empty())
    outcome_.verdict = processes_.size() == 1 ? "the process succeeded"
                       : replaced_ == 0 ? str("all ", processes_.size(), " processes succeeded")
                                        : str("all workers succeeded; ", replaced_,
                                              " of the servers died and "
                                              "had a copy");
  if (restarts_ > 0 && outcome_.code == 0)
    outcome_.verdict += str(" (", restarts_, restarts_ == 1 ? " restart)" : " restarts)");
  return std::move(outcome_);
}

void Supervisor::handle(uint64_t source) {
  if (source == kSignal) return on_signal();
  if (source == kStopLater) return on_stop_later();
  if (source == kGrace) return on_grace();
  if (source == kTick) return show_progress();
  if (source == kPeer) return on_peer_event();
  if (source == kLook) return look_for_stopped();
  if (source == kCause) return on_cause_timeout();
  Running& process = processes_[(source - kFirstChild) / 2];
  if (process.ended) return;
  if ((source - kFirstChild) % 2 == 0) return on_exit(process);
  process.output.forward(
      [&](std::string_view bytes) { console_.output(process.task->name, bytes); });
}

int Supervisor::alive() const {
  return static_cast<int>(
      std::ranges::count_if(processes_, [](const Running& p) { return !p.ended; }));
}

bool Supervisor::workers_done() const {
  bool any = false;
  for (const Running& process : processes_) {
    if (process.task->role != JobRole::kWorker) continue;
    any = true;
    if (!process.ended) return false;
  }
  // A machine with servers only waits for their end, unless its peers report that all is done.
  return any || how_.peers;
}

void Supervisor::on_exit(Running& process) {
  // Its last output is still in the pipe.
  process.output.forward(
      [&](std::string_view bytes) { console_.output(process.task->name, bytes); });
  process.output.finish();
  console_.end_output(process.task->name);
  process.ended = true;
  const ExitStatus status = reap(process.child);
  process.succeeded = status.ok();
  EndedProcess end{process.task->name, process.child.pid,      status,
                   in_words(status),   since(process.started), process.task->log_path};
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, process.child.pidfd.get(), nullptr);
  process.child.pidfd.reset();
  if (status.signal == SIGKILL && process.killed_as_stopped)
    end.why =
        str("it was stopped (SIGSTOP) for ", how_.stopped_seconds, " s, so fleetrun killed it");
  else if (status.signal == SIGKILL && process.killed)
    end.why = "killed by fleetrun (SIGKILL): it did not end when asked to";
  else if (status.signal == SIGKILL && count_oom_kills(how_.vmstat) > oom_kills_)
    end.why =
        "killed by the kernel's out-of-memory killer (SIGKILL): memory ran out; use fewer "
        "workers or a smaller batch";
  outcome_.processes.push_back(end);
  const bool asked_to_end =
      phase_ != Phase::kRunning &&
      (status.signal == SIGTERM || status.shell_code() == 128 + SIGTERM || process.killed);
  if (!status.ok() && outcome_.code == 0 && !asked_to_end && phase_ != Phase::kStopping) {
    on_failure(process, end);
  } else {
    console_.event(Level::kInfo, end.name, " ended after ", seconds_text(end.seconds), ": ",
                   end.why);
    a_worker_succeeded_ |= status.ok() && process.task->role == JobRole::kWorker;
    if (status.ok() && how_.on_success) how_.on_success(*process.task, end.pid);
  }
  if (phase_ != Phase::kRunning || consequence_ || process.task->role != JobRole::kWorker ||
      !workers_done())
    return;
  if (how_.peers)
    how_.peers->report_workers_done(given_up_ ? given_up_->first : "",
                                    given_up_ ? given_up_->second : 0);
  else
    finish();
}

// All workers have ended: the servers have no clients left, and mostly end by themselves.
void Supervisor::finish() {
  phase_ = Phase::kFinishing;
  set_timer(stop_later_, kServersEndSeconds, 0);
}

void Supervisor::on_failure(Running& process, const EndedProcess& end) {
  console_.event(Level::kError, what_of(end), ". Last lines of ", end.log_path, ":\n",
                 last_lines(process.task->log_path));
  if (lives_on(process, end)) return;
  if (phase_ == Phase::kRunning && how_.peers && how_.is_consequence &&
      how_.is_consequence(*process.task)) {
    if (consequence_) return;  // one of several
    consequence_ = {process.task, end};
    console_.event(Level::kInfo, end.name, " ended because a worker of another machine failed: ",
                   "waiting for that report");
    set_timer(cause_, kCauseSeconds, 0);
    return;
  }
  decide(*process.task, end);
}

// No other machine has reported what it followed from.
void Supervisor::on_cause_timeout() {
  uint64_t times = 0;
  if (read(cause_.get(), &times, sizeof times) < 0 || phase_ != Phase::kRunning) return;
  decide(*consequence_->first, consequence_->second);
}

// It is the first failure of the job.
void Supervisor::decide(const Task& task, const EndedProcess& end) {
  const std::string what = what_of(end);
  outcome_.code = end.status.shell_code();
  outcome_.verdict = str(end.name, " failed: ", end.why);
  if (how_.on_failure) how_.on_failure(task, end.pid, end.why);
  if (phase_ == Phase::kRunning)
    stop_after_failure(alive() == 1 ? "the other process"
                                    : str("the other ", alive(), " processes"));
  // Last, because it may wait for the network.
  if (how_.peers) how_.peers->report_failure(what, outcome_.code, false);
}

std::string Supervisor::what_of(const EndedProcess& end) const {
  return str(end.name, " failed after ", seconds_text(end.seconds), ": ", end.why, " (host ",
             how_.host, ", pid ", end.pid, ")");
}

bool Supervisor::a_server_ended() const {
  return std::ranges::any_of(processes_, [](const Running& p) {
    return p.task->role == JobRole::kServer && p.ended && p.succeeded;
  });
}

// Whether the job goes on: with the process started again, or without it.
bool Supervisor::lives_on(Running& process, const EndedProcess& end) {
  const Reaction reaction =
      how_.on_death ? how_.on_death(*process.task, process.restarts, a_server_ended()) : Reaction{};
  // A server that has died may be seen only after the last worker has ended: nothing is started for
  // a job at its end, but a server with a copy is no loss then either.
  if (phase_ != Phase::kRunning && reaction.lost) return false;
  if (!reaction.why.empty()) console_.event(Level::kWarning, end.name, ": ", reaction.why);
  if (reaction.action == AfterDeath::kStopJob) return false;
  if (reaction.action == AfterDeath::kStartAgain && phase_ == Phase::kRunning)
    return start_again(process);
  if (!reaction.lost) {
    ++replaced_;
    return true;
  }
  if (!given_up_) given_up_ = {str(end.name, " failed: ", end.why), end.status.shell_code()};
  return true;
}

bool Supervisor::start_again(Running& process) {
  FLEETX_CHECK(process.child.pid > 1);
  kill(-process.child.pid, SIGKILL);  // what it has left behind
  ++process.restarts;
  try {
    process.output = open_output(*process.task, true);
    start(process);
    if (how_.on_started) how_.on_started();
  } catch (const Error& e) {
    console_.event(Level::kError, process.task->name, " cannot be started again: ", e.what());
    return false;
  }
  ++restarts_;
  return true;
}

// A process that is stopped answers nobody and does not end by itself, so the job would wait for
// it. It is treated as dead.
void Supervisor::look_for_stopped() {
  uint64_t times = 0;
  if (read(look_.get(), &times, sizeof times) < 0 || phase_ != Phase::kRunning) return;
  for (Running& process : processes_) {
    if (process.ended || process.killed_as_stopped) continue;
    if (state_of(process.child.pid) != 'T') {
      process.stopped.reset();
      continue;
    }
    if (!process.stopped) process.stopped = Clock::now();
    if (since(*process.stopped) < how_.stopped_seconds) continue;
    console_.event(Level::kError, process.task->name, " is stopped (SIGSTOP) since ",
                   seconds_text(since(*process.stopped)), " and answers nobody (host ", how_.host,
                   ", pid ", process.child.pid, "): killing it");
    process.killed_as_stopped = true;
    signal_group(process.child, SIGKILL);
  }
}

void Supervisor::on_signal() {
  signalfd_siginfo info{};
  while (read(how_.signal_fd, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    const std::string name = signal_name(number);
    if (number == SIGCHLD) {
      // Our children are reaped by their pidfd; any other pid is an adopted orphan.
      const auto pid = static_cast<pid_t>(info.ssi_pid);
      const auto ours = [&](const Running& p) { return p.child.pid == pid; };
      if (pid != how_.watchdog && std::ranges::none_of(processes_, ours))
        waitpid(pid, nullptr, WNOHANG);
    } else if (number == SIGUSR1 || number == SIGUSR2) {
      console_.event(Level::kInfo, name, " is passed on to ", alive(), " processes");
      signal_all(number);
    } else if (phase_ == Phase::kStopping && outcome_.by_user) {
      console_.event(Level::kWarning, name, " again: killing ", alive(), " processes");
      on_grace();
    } else {
      console_.event(Level::kWarning, name, " is passed on to ", alive(), " processes; SIGKILL in ",
                     how_.grace_seconds, " s, or at once with a second ", name);
      outcome_.by_user = true;
      stop(Phase::kStopping, number);
      if (outcome_.code != 0) continue;
      outcome_.code = 128 + number;
      outcome_.verdict = str("stopped by ", name);
      if (how_.peers)
        how_.peers->report_failure(str(outcome_.verdict, " on host ", how_.host), outcome_.code,
                                   true);
    }
  }
}

void Supervisor::on_peer_event() {
  const std::optional<PeerEvent> event = how_.peers->next_event();
  if (!event || phase_ != Phase::kRunning) return;
  if (event->workers_done) {
    if (!event->what.empty() && !given_up_) given_up_ = {event->what, event->code};
    return finish();
  }
  outcome_.code = event->code;
  outcome_.verdict = event->what;
  outcome_.by_user = event->by_user;
  console_.event(Level::kError, event->what);
  stop_after_failure(alive() == 1 ? "the process here" : str(alive(), " processes here"));
}

// The store tells the processes that wait for the failed one. They get a moment to log the call and
// step they were in.
void Supervisor::stop_after_failure(const std::string& whom) {
  const double wait = how_.error_log_seconds;
  if (alive() > 0)
    console_.event(Level::kInfo, "stopping ", whom, ": SIGTERM ",
                   wait > 0 ? str("in ", wait, " s, SIGKILL ") : "now, SIGKILL in ",
                   how_.grace_seconds, wait > 0 ? " s later" : " s");
  phase_ = Phase::kStopping;
  set_timer(stop_later_, std::max(wait, kSoon), 0);
}

void Supervisor::on_stop_later() {
  uint64_t times = 0;
  if (read(stop_later_.get(), &times, sizeof times) < 0) return;
  if (phase_ == Phase::kFinishing && alive() > 0)
    console_.event(Level::kInfo, "all workers have ended, parameter server are killed");
  stop(phase_, SIGTERM);
}

void Supervisor::on_grace() {
  uint64_t times = 0;
  if (read(grace_.get(), &times, sizeof times) < 0 && errno != EAGAIN) return;
  for (Running& process : processes_) process.killed = process.killed || !process.ended;
  signal_all(SIGKILL);
}

void Supervisor::signal_all(int signal) {
  for (const Running& process : processes_)
    if (!process.ended) signal_group(process.child, signal);
}

void Supervisor::stop(Phase phase, int signal) {
  phase_ = phase;
  signal_all(signal);
  set_timer(stop_later_, 0, 0);
  set_timer(grace_, std::max(how_.grace_seconds, kSoon), 0);
}

void Supervisor::set_timer(const Fd& timer, double seconds, double interval) const {
  const auto spec = [](double s) {
    const double whole = std::floor(s);
    return timespec{static_cast<time_t>(whole), static_cast<long>((s - whole) * 1e9)};
  };
  const itimerspec when{spec(interval), spec(seconds)};
  timerfd_settime(timer.get(), 0, &when, nullptr);
}

void Supervisor::show_progress() {
  uint64_t times = 0;
  if (read(tick_.get(), &times, sizeof times) < 0) return;
  console_.progress(str("[fleetrun] ", alive(), " of ", processes_.size(), " processes run, ",
                        seconds_text(std::floor(since(begin_)))));
}

}  // namespace

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD})
    sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  FLEETX_CHECK(fd_, std::strerror(errno));
}

Outcome supervise(const std::vector<Task>& tasks, const Supervision& supervision,
                  Console& console) {
  return Supervisor(supervision, console).run(tasks);
}

}  // namespace fleetx::launch
