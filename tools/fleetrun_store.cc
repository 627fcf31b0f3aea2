#include "tools/fleetrun_store.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/comm/store.h"

namespace fleetx::tools {
namespace {

using comm::Milliseconds;

Milliseconds to_milliseconds(double seconds) {
  return Milliseconds(static_cast<Milliseconds::rep>(seconds * 1000));
}

constexpr const char* kEarlyEnd = "ended with exit code 0 before it joined the others";
constexpr Milliseconds kLongerThanAnyJob{std::chrono::hours(24 * 365)};

// A key that was set is there within some milliseconds.
bool is_set(comm::StoreClient& store, const std::string& key) {
  try {
    store.wait(key, Milliseconds(100));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Of a server or client of a store. A process may end before its last message has come.
template <class Store>
std::optional<int> failed_worker_of(const Store& store) {
  const comm::Deadline deadline = comm::after(Milliseconds(200));
  while (!store.failure() && comm::Clock::now() < deadline)
    std::this_thread::sleep_for(Milliseconds(5));
  const std::optional<comm::Failure> failure = store.failure();
  // Of an early end no launcher reports a failure: the process has succeeded.
  if (!failure || failure->rank < 0 || failure->what == kEarlyEnd) return std::nullopt;
  return failure->rank;
}

comm::Failure early_end(int rank, const std::string& host, long pid) {
  return {.rank = rank, .host = host, .pid = pid, .what = kEarlyEnd};
}

// Waits for the mode that the servers tell (job_var::kModeKey). Beforehand: after a failure the
// store answers with the failure alone.
class ModeListener {
 public:
  explicit ModeListener(comm::StoreClient& store) : store_(store), thread_([this] { listen(); }) {}
  ~ModeListener() {
    try {
      if (!mode(Milliseconds(0))) store_.set(job_var::kModeKey, "");  // ends the wait
    } catch (const Error&) {
      // A failure was published, which ends it, too.
    }
  }
  // The default is for a mode that was told just before a process died, and is still on its way.
  std::optional<std::string> mode(Milliseconds wait = Milliseconds(200)) const {
    std::unique_lock lock(mutex_);
    heard_.wait_for(lock, wait, [&] { return done_; });
    return mode_;
  }

 private:
  void listen() {
    std::string mode;
    try {
      mode = store_.get(job_var::kModeKey, kLongerThanAnyJob);
    } catch (const Error&) {
    }
    const std::scoped_lock lock(mutex_);
    if (!mode.empty()) mode_ = mode;
    done_ = true;
    heard_.notify_all();
  }

  comm::StoreClient& store_;
  mutable std::mutex mutex_;
  mutable std::condition_variable heard_;
  bool done_ = false;  // there will be no other answer
  std::optional<std::string> mode_;
  std::jthread thread_;
};

class ServedStore final : public launch::ProcessStore {
 public:
  ServedStore(const launch::Endpoint& where, const std::string& secret, const std::string& job)
      : secret_(secret),
        job_(job),
        server_({.listen = {where.ip, where.port}, .secret = secret, .job = job}) {}
  launch::Endpoint endpoint() const override {
    const comm::Endpoint endpoint = server_.endpoint();
    return {endpoint.host, endpoint.port};
  }
  void abort(int rank, const std::string& host, long pid, const std::string& what) override {
    server_.abort({.rank = rank, .host = host, .pid = pid, .what = what});
  }
  std::optional<int> failed_worker() const override { return failed_worker_of(server_); }
  void ended(int rank, const std::string& host, long pid) override {
    server_.ended(early_end(rank, host, pid));
  }
  void listen_for_mode() override {
    client_.emplace(
        comm::StoreOptions{.server = server_.endpoint(), .secret = secret_, .job = job_});
    listener_.emplace(*client_);
  }
  std::optional<std::string> mode() const override {
    return listener_ ? listener_->mode() : std::nullopt;
  }
  bool has(const std::string& key) override { return client_ && is_set(*client_, key); }

 private:
  const std::string secret_, job_;
  comm::StoreServer server_;
  std::optional<comm::StoreClient> client_;
  std::optional<ModeListener> listener_;
};

// A client of the store that the first machine serves.
class RemoteStore final : public launch::ProcessStore {
 public:
  RemoteStore(const launch::Endpoint& where, const std::string& secret, const std::string& job)
      : client_({.server = {where.ip, where.port}, .secret = secret, .job = job}) {}
  launch::Endpoint endpoint() const override {
    const comm::Endpoint& endpoint = client_.options().server;
    return {endpoint.host, endpoint.port};
  }
  void abort(int rank, const std::string& host, long pid, const std::string& what) override {
    client_.abort({.rank = rank, .host = host, .pid = pid, .what = what});
  }
  std::optional<int> failed_worker() const override { return failed_worker_of(client_); }
  void ended(int rank, const std::string& host, long pid) override {
    client_.ended(early_end(rank, host, pid));
  }
  void listen_for_mode() override { listener_.emplace(client_); }
  std::optional<std::string> mode() const override {
    return listener_ ? listener_->mode() : std::nullopt;
  }
  bool has(const std::string& key) override { return is_set(client_, key); }

 private:
  comm::StoreClient client_;
  std::optional<ModeListener> listener_;
};

class StoreLink final : public launch::Link {
 public:
  explicit StoreLink(const launch::LinkOptions& options) : options_(options) {
    if (options.serve) {
      server_.emplace(comm::StoreServer::Options{.listen = {options.where.ip, options.where.port},
                                                 .secret = options.secret,
                                                 .job = options.job});
    }
    connect();
    watch_ = client_->on_failure([fn = options.on_failure](const comm::Failure& f) {
      fn({f.rank, f.host, f.what});
    });
  }

  std::vector<std::string> gather(const std::string& name, const std::string& value,
                                  double seconds) override {
    return client_->gather(name, options_.node, options_.nodes, value, to_milliseconds(seconds));
  }

  void abort(const std::string& what) override {
    client_->abort({.rank = options_.node, .host = options_.host, .what = what});
    // The caller may exit after this, and the store with it: wait until the failure is published.
    try {
      client_->wait("until the failure is known", Milliseconds(1000));
    } catch (const Error&) {
    }
  }

  void leave() override {
    const auto key = [](int node) { return str("fleetrun/left/", node); };
    if (!options_.serve) return client_->set(key(options_.node), "");
    for (int node = 1; node < options_.nodes; ++node)
      client_->wait(key(node), Milliseconds(10'000));
  }

 private:
  void connect() {
    const comm::Deadline deadline = comm::after(to_milliseconds(options_.seconds));
    for (;;) {
      try {
        const int left = comm::left_ms(deadline);
        client_.emplace(comm::StoreOptions{.server = {options_.where.ip, options_.where.port},
                                           .secret = options_.secret,
                                           .job = options_.job,
                                           .rank = options_.node,
                                           .host = options_.host,
                                           .timeout = Milliseconds(left)});
        return;
      } catch (const Error& e) {
        if (!options_.retry_connect || e.kind() == Error::Kind::kTimeout) throw;
        std::this_thread::sleep_for(Milliseconds(50));
      }
    }
  }

  launch::LinkOptions options_;
  std::optional<comm::StoreServer> server_;
  std::optional<comm::StoreClient> client_;
  comm::StoreClient::Watch watch_;
};

}  // namespace

launch::Stores stores_of_comm() {
  return {[](const launch::Endpoint& where, const std::string& secret, const std::string& job) {
            return std::make_unique<ServedStore>(where, secret, job);
          },
          [](const launch::Endpoint& where, const std::string& secret, const std::string& job) {
            return std::make_unique<RemoteStore>(where, secret, job);
          },
          [](const launch::LinkOptions& options) { return std::make_unique<StoreLink>(options); }};
}

}  // namespace fleetx::tools
