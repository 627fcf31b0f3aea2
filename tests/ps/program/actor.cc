// A server or worker of a small job, as a process of its own that can be killed:
//   actor server INDEX ENDPOINT MODE WORKERS SERVERS SNAPSHOT|- HOW
//     HOW: fresh, restore, copied_by:ENDPOINT, or blank:ENDPOINT (the same, started again); with
//     copies there are two servers
//   actor worker INDEX ENDPOINTS MODE WORKERS PHASE loop|SIGNAL FOLDER
// A worker is in a phase (start, pull, push, barrier, save, load, shrink, steps) again and again
// until its input ends, or sends itself a signal in the middle of it. What it meets goes to its
// output: "begins", "in PHASE", "error: ...", "ends".
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "tests/ps/job.h"

namespace fleetx::ps {
namespace {

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

Mode mode_of(const std::string& name) { return name == "sync" ? Mode::kSync : Mode::kAsync; }

int serve(char** argv) {
  const JobSpec job =
      small_job(std::atoi(argv[4]), std::atoi(argv[5]), mode_of(argv[3]), add_rule());
  const std::string snapshot = argv[6], how = argv[7];
  const bool copies = how.starts_with("copied_by:") || how.starts_with("blank:");
  const std::string other = copies ? how.substr(how.find(':') + 1) : "";
  say("begins");
  Server server({.job = job,
                 .index = std::atoi(argv[1]),
                 .endpoint = argv[2],
                 .secret = "s3cret",
                 .copied_by = other,
                 .keeps_copy_of = other,
                 .blank = how.starts_with("blank:"),
                 .on_complete = [] { say("is complete"); },
                 .snapshot = snapshot == "-" ? "" : snapshot,
                 .snapshot_interval = std::chrono::milliseconds(300)});
  if (how == "restore") server.restore();
  say("listens");
  server.run();
  say("ends");
  return 0;
}

class Worker {
 public:
  Worker(const JobSpec& job, ClientOptions options, std::string phase, std::string folder)
      : job_(job),
        client_(std::move(options)),
        phase_(std::move(phase)),
        folder_(std::move(folder)) {
    if (client_.worker() == 0) client_.set_dense(0, values_.const_pointers()).wait();
    if (phase_ == "load") client_.save(folder_);
  }

  // Once; `in_it` is called when the request is on its way.
  void act(const std::function<void()>& in_it) {
    if (phase_ == "pull") return with(client_.pull_sparse(0, ids_, rows_.data()), in_it);
    if (phase_ == "push") return with(client_.push_sparse(0, ids_, rows_.data(), 0), in_it);
    // These return when they are done: the signal comes from another thread.
    std::thread other;
    if (in_it) other = std::thread([&] { in_it(); });
    if (phase_ == "barrier") client_.barrier();
    if (phase_ == "save") client_.save(folder_);
    if (phase_ == "load") client_.load(folder_);
    if (phase_ == "shrink") client_.shrink(-1);
    if (phase_ == "steps") step();
    if (other.joinable()) other.join();
  }
  void leave() { client_.goodbye(); }

 private:
  void with(Ticket ticket, const std::function<void()>& in_it) {
    if (in_it) in_it();
    ticket.wait();
  }
  void step() {
    client_.push_dense(0, values_.const_pointers(), 0);
    client_.push_sparse(0, ids_, rows_.data(), 0);
    client_.pull_dense(0, values_.pointers()).wait();
  }

  const JobSpec job_;
  Client client_;
  const std::string phase_, folder_;
  Values values_{job_.dense[0]};
  std::vector<float> rows_ = std::vector<float>(12);
  std::shared_ptr<const IdBatch> ids_ =
      std::make_shared<const IdBatch>(std::vector<int64_t>{1, 2, 3, 4}, job_.servers);
};

bool input_ended() {
  pollfd entry{STDIN_FILENO, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

int work(char** argv) {
  const std::vector<std::string> servers = split_list(argv[2]);
  const JobSpec job =
      small_job(std::atoi(argv[4]), static_cast<int>(servers.size()), mode_of(argv[3]), add_rule());
  const std::string phase = argv[5], how = argv[6];
  const int number = how == "loop" ? 0 : std::atoi(how.c_str());
  say("begins");
  if (phase == "start" && number != 0) raise(number);
  ClientOptions options{.job = job,
                        .worker = std::atoi(argv[1]),
                        .servers = servers,
                        .secret = "s3cret",
                        .connect_timeout = std::chrono::seconds(8),
                        .request_timeout = std::chrono::seconds(12)};
  try {
    Worker worker(job, options, phase == "start" ? "steps" : phase, argv[7]);
    say("in " + phase);
    if (number != 0) worker.act([&] { raise(number); });
    while (!input_ended()) {
      worker.act(nullptr);
      usleep(3000);
    }
    worker.leave();
  } catch (const std::exception& e) {
    say(std::string("error: ") + e.what());
    return 3;
  }
  say("ends");
  return 0;
}

}  // namespace
}  // namespace fleetx::ps

int main(int argc, char** argv) {
  if (argc != 9) return 99;
  const std::string role = argv[1];
  return role == "server" ? fleetx::ps::serve(argv + 1) : fleetx::ps::work(argv + 1);
}
