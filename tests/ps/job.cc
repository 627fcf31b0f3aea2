#include "tests/ps/job.h"

#include <poll.h>
#include <sys/socket.h>

#include "fleetx/base/error.h"
#include "fleetx/comm/socket.h"

namespace fleetx::ps {
namespace {

class Sgd : public UpdateRule {
 public:
  std::string text() const override { return "sgd"; }
  void update(const Batch& b) const override {
    for (size_t r = 0; r < b.records.size(); ++r)
      for (int64_t i = 0; i < b.width; ++i) b.records[r][i] -= b.lr * b.gradients[r][i];
  }
};

class Momentum : public UpdateRule {
 public:
  std::string text() const override { return "momentum mu=0.9"; }
  std::vector<float> states() const override { return {0}; }
  void update(const Batch& b) const override {
    for (size_t r = 0; r < b.records.size(); ++r)
      for (int64_t i = 0; i < b.width; ++i) {
        float& velocity = b.records[r][b.width + i];
        velocity = 0.9f * velocity + b.gradients[r][i];
        b.records[r][i] -= b.lr * velocity;
      }
  }
};

class Counting : public UpdateRule {
 public:
  std::string text() const override { return "counting"; }
  std::vector<float> states() const override { return {0, 5}; }
  std::vector<float> scalars() const override { return {1}; }
  void update(const Batch& b) const override {
    for (size_t r = 0; r < b.records.size(); ++r)
      for (int64_t i = 0; i < b.width; ++i) {
        b.records[r][i] -= b.lr * b.gradients[r][i] * b.scalars[0];
        b.records[r][b.width + i] += b.gradients[r][i];
        b.records[r][2 * b.width + i] += 1;
      }
  }
  void advance(std::span<float> scalars) const override { scalars[0] += 1; }
};

}  // namespace

UpdateRulePtr sgd() { return std::make_shared<Sgd>(); }
UpdateRulePtr momentum() { return std::make_shared<Momentum>(); }
UpdateRulePtr counting() { return std::make_shared<Counting>(); }

JobSpec small_job(int workers, int servers, Mode mode, const UpdateRulePtr& rule) {
  JobSpec job{.workers = workers, .servers = servers, .mode = mode};
  job.slicing.min_block_size = 8;
  job.dense = {{.name = "dense", .params = {{"w", {6, 4}, rule}, {"b", {5}, rule}}}};
  job.sparse = {
      {.name = "rows",
       .dim = 3,
       .rule = rule,
       .initializer = {.kind = Initializer::Kind::kUniform, .a = -1, .b = 1, .seed = 11}}};
  return job;
}

Servers::Servers(const JobSpec& job, std::function<void(ServerOptions&)> change,
                 const std::string& load_from)
    : job_(job), errors_(static_cast<size_t>(job.servers)) {
  for (int s = 0; s < job.servers; ++s) {
    ServerOptions options{.job = job, .index = s, .endpoint = "127.0.0.1:0", .secret = "s3cret"};
    if (change) change(options);
    servers_.push_back(std::make_unique<Server>(options));
    if (!load_from.empty()) servers_.back()->load(load_from);
  }
  for (int s = 0; s < job.servers; ++s)
    threads_.emplace_back([this, s] {
      try {
        (*this)[s].run();
      } catch (const Error& e) {
        errors_[static_cast<size_t>(s)] = e.what();
      }
    });
}

Servers::~Servers() {
  for (const auto& server : servers_) server->stop();
  join();
}

void Servers::join() {
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

std::vector<std::string> Servers::endpoints() const {
  std::vector<std::string> all;
  for (const auto& server : servers_) all.push_back(server->endpoint());
  return all;
}

ClientOptions Servers::client(int worker) const {
  ClientOptions options{.job = job_, .worker = worker, .servers = endpoints(), .secret = "s3cret"};
  options.connect_timeout = std::chrono::seconds(10);
  options.request_timeout = std::chrono::seconds(30);
  return options;
}

Values::Values(const DenseSpec& spec, float first) {
  for (const DenseParam& p : spec.params) {
    params.emplace_back(static_cast<size_t>(p.shape.numel()));
    for (float& x : params.back()) x = first += 0.25f;
  }
}

std::vector<float*> Values::pointers() {
  std::vector<float*> all;
  for (auto& p : params) all.push_back(p.data());
  return all;
}

std::vector<const float*> Values::const_pointers() const {
  std::vector<const float*> all;
  for (const auto& p : params) all.push_back(p.data());
  return all;
}

Proxy::Proxy(const std::string& server) : server_(server) {
  listener_ = comm::listen_on({"127.0.0.1", 0});
  endpoint_ = to_string(comm::local_endpoint(listener_.get()));
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  stop_ = true;
  thread_.join();
}

std::string Proxy::endpoint() const { return endpoint_; }

void Proxy::break_after(From from, int64_t bytes) { limit_[static_cast<size_t>(from)] = bytes; }

void Proxy::run() {
  while (!stop_) {
    pollfd entry{listener_.get(), POLLIN, 0};
    if (poll(&entry, 1, 20) <= 0) continue;
    const Fd worker(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const Fd server =
        comm::connect_to(comm::parse_endpoint(server_), comm::after(comm::Milliseconds(5000)));
    carry(worker.get(), server.get());
  }
}

void Proxy::carry(int worker, int server) {
  const int ends[2] = {worker, server};
  char bytes[512];
  while (!stop_) {
    pollfd entries[2] = {{worker, POLLIN, 0}, {server, POLLIN, 0}};
    poll(entries, 2, 20);
    for (size_t from : {size_t{0}, size_t{1}}) {
      if (entries[from].revents == 0) continue;
      const auto room = std::min<int64_t>(sizeof bytes, limit_[from] - passed_[from]);
      if (room <= 0) {
        limit_[from] = INT64_MAX;
        ++broken_;
        return;
      }
      const ssize_t n = recv(ends[from], bytes, static_cast<size_t>(room), 0);
      if (n <= 0) return;
      passed_[from] += n;
      comm::send_all(ends[1 - from], {bytes, static_cast<size_t>(n)},
                     comm::after(comm::Milliseconds(5000)));
    }
  }
}

}  // namespace fleetx::ps
