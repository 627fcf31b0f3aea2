#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"
#include "fleetx/comm/authenticate.h"
#include "fleetx/comm/interruptible_wait.h"
#include "fleetx/comm/store.h"
#include "fleetx/comm/store_wire.h"
#include "fleetx/comm/tcp_tls.h"

namespace fleetx::comm {
namespace {

using wire::Kind;
using wire::Message;

constexpr Milliseconds kReplyTimeout{2'000};  // the store answers such requests at once

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "this machine";
}

}  // namespace

class StoreClient::Impl {
 public:
  explicit Impl(StoreOptions options) : options_(std::move(options)) {
    check_arg(!options_.secret.empty(), "store: the job's secret is empty");
    if (options_.host.empty()) options_.host = host_name();
    const Deadline deadline = after(options_.timeout);
    Fd socket = connect_to(options_.server, deadline);
    channel_ = Channel::over(std::move(socket), tls_.get(), false);
    tune(channel_->fd());
    const auto refused = [&](Error::Kind kind, std::string_view why) {
      fail(kind, str("store at ", to_string(options_.server),
                     ": authentication failed (is the job's secret right, and is FLEETX_TLS_CERT "
                     "set on all hosts or on none?): ",
                     why));
    };
    try {
      authenticate(deadline);
    } catch (const ConnectionLost& e) {
      refused(Error::Kind::kComm, str("it ", e.what()));
    } catch (const Error& e) {
      refused(e.kind(), e.what());
    }
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    thread_ = std::thread([this] { receive_loop(); });
  }

  ~Impl() {
    try {
      if (std::uncaught_exceptions() == 0 && !failed_) leave();
    } catch (...) {  // interrupted: a destructor cannot pass it on
    }
    stop_ = true;
    const uint64_t one = 1;
    if (write(wake_.get(), &one, sizeof one) < 0) shutdown(channel_->fd(), SHUT_RDWR);
    thread_.join();
  }

  const StoreOptions& options() const { return options_; }

  Message call(Message m, Milliseconds timeout, const std::string& what) {
    if (timeout <= Milliseconds::zero()) timeout = options_.timeout;
    const auto begin = Clock::now();
    const uint32_t id = submit(std::move(m), begin + timeout);
    std::unique_lock lock(mutex_);
    const bool there = wait_interruptible(changed_, lock, begin + timeout,
                                          [&] { return failure_ || replies_.count(id); });
    if (const auto it = replies_.find(id); it != replies_.end()) {
      const Message reply = std::move(it->second);
      forget(id);
      if (reply.kind == Kind::kRefused)
        fail(Error::Kind::kInvalidArgument, str("store: ", what, ": ", reply.value));
      return reply;
    }
    forget(id);
    if (there) fail(Error::Kind::kComm, str("store: ", what, ": ", to_string(*failure_)));
    lock.unlock();
    const std::string missing = cancel(id);
    fail(Error::Kind::kTimeout, str("store: ", what, ": no answer after ", seconds_since(begin),
                                    " s", missing.empty() ? "" : "; missing: " + missing));
  }

  void abort(const Failure& f) { notify(Kind::kAbort, f); }
  void ended(const Failure& f) { notify(Kind::kEnded, f); }

  Failure suspect(const Failure& f) {
    notify(Kind::kSuspect, f);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kReplyTimeout, [&] { return failure_.has_value(); });
    return failure_.value_or(f);
  }

  std::optional<Failure> failure() const {
    std::scoped_lock lock(mutex_);
    return failure_;
  }
  bool failed() const { return failed_; }

  Watch on_failure(std::function<void(const Failure&)> fn) {
    auto watch = std::make_shared<std::function<void(const Failure&)>>(std::move(fn));
    std::unique_lock lock(calling_);
    watches_.emplace_back(watch);
    if (const auto failure = this->failure()) (*watch)(*failure);
    // Unregistering waits for a callback that is running.
    return {watch.get(), [this, watch](void*) mutable {
              std::scoped_lock guard(calling_);
              watch.reset();
            }};
  }

  void leave() {
    try {
      call({.kind = Kind::kLeave}, kReplyTimeout, "leave");
    } catch (const Error&) {  // the store is gone: nothing to leave
    }
  }

 private:
  void authenticate(Deadline deadline) {
    comm::authenticate(
        {.number = options_.rank, .count = getpid(), .key = options_.host}, options_.secret,
        [&] { return options_.job + channel_->binding(); },
        [&](const Message& m) { write_all(*channel_, wire::encode(m), deadline, check_interrupt); },
        [&] {
          for (std::string bytes;;) {
            if (auto message = reader_.next()) return *message;
            read_some(*channel_, bytes, wire::kMaxBytesBeforeProof, deadline, check_interrupt);
            reader_.feed(bytes);
          }
        });
    reader_.set_max_bytes(wire::kMaxBytes);
  }

  // One thread at a time sends; the one that receives has its turn in between.
  void send(const Message& m, Deadline deadline) {
    const std::string bytes = wire::encode(m);
    const std::scoped_lock lock(sending_);
    try {
      for (std::string_view rest = bytes; !rest.empty();) {
        const iovec part{const_cast<char*>(rest.data()), rest.size()};
        const size_t n = with_channel([&](Channel& channel) { return channel.write({&part, 1}); });
        rest.remove_prefix(n);
        if (n == 0) wait_until_ready(channel_->fd(), POLLOUT, deadline, check_interrupt);
      }
    } catch (const ConnectionLost& e) {
      fail(Error::Kind::kComm, str("the store ", e.what()));
    }
  }

  // TLS keeps one state for both directions.
  template <class Fn>
  size_t with_channel(const Fn& fn) {
    const std::scoped_lock lock(channel_mutex_);
    return fn(*channel_);
  }

  uint32_t submit(Message m, Deadline deadline) {
    {
      std::scoped_lock lock(mutex_);
      m.id = ++last_id_;
      expected_.insert(m.id);
    }
    send(m, deadline);
    return m.id;
  }

  void forget(uint32_t id) {
    expected_.erase(id);
    replies_.erase(id);
  }

  std::string cancel(uint32_t request) {
    try {
      const uint32_t id =
          submit({.kind = Kind::kCancel, .number = int64_t{request}}, after(kReplyTimeout));
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kReplyTimeout, [&] { return replies_.count(id); });
      const std::string missing = replies_[id].value;
      forget(id);
      return missing;
    } catch (const Error&) {
      return "";
    }
  }

  void notify(Kind kind, const Failure& f) {
    const Message m{.kind = kind, .number = f.rank, .count = f.pid, .key = f.host, .value = f.what};
    try {
      send(m, after(kReplyTimeout));
    } catch (const Error&) {  // the receive thread sees that the store is gone
    }
  }

  void receive_loop() {
    try {
      for (;;) {
        while (auto m = reader_.next()) handle(*m);  // also what came with the welcome
        pollfd fds[] = {{channel_->fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
        if (stop_) return;
        receive();
      }
    } catch (const ConnectionLost&) {
    } catch (const Error&) {  // a damaged stream is treated as a lost connection
    }
    set_failure(
        {-1, options_.server.host, 0,
         str("is gone: the connection to the store at ", to_string(options_.server), " ended"),
         false});
  }

  // Takes what has come, to the last byte: poll() does not see what is decrypted already.
  void receive() {
    char buffer[65536];
    const iovec part{buffer, sizeof buffer};
    for (size_t n = sizeof buffer; n == sizeof buffer;) {
      n = with_channel([&](Channel& channel) { return channel.read({&part, 1}); });
      reader_.feed({buffer, n});
    }
  }

  void handle(const Message& m) {
    if (m.kind == Kind::kFailure)
      return set_failure({static_cast<int>(m.number), m.key, m.count, m.value, m.id != 0});
    std::scoped_lock lock(mutex_);
    if (!expected_.count(m.id)) return;
    replies_[m.id] = m;
    changed_.notify_all();
  }

  void set_failure(const Failure& failure) {
    std::scoped_lock calling(calling_);
    {
      std::scoped_lock lock(mutex_);
      if (failure_) return;
      failure_ = failure;
      failed_ = true;
      changed_.notify_all();
    }
    for (const auto& weak : watches_)
      if (const auto watch = weak.lock()) (*watch)(failure);
  }

  StoreOptions options_;
  const std::shared_ptr<const TlsContext> tls_ = TlsContext::from_environment();
  std::unique_ptr<Channel> channel_;
  std::mutex channel_mutex_;
  wire::Reader reader_;
  Fd wake_;
  std::atomic<bool> stop_ = false, failed_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failure> failure_;
  uint32_t last_id_ = 0;
  std::set<uint32_t> expected_;
  std::map<uint32_t, Message> replies_;

  std::mutex sending_;
  std::recursive_mutex calling_;
  std::vector<std::weak_ptr<std::function<void(const Failure&)>>> watches_;

  std::thread thread_;
};

StoreOptions store_options_from_env(int rank) {
  const auto need = [](std::string_view name) {
    const auto value = env::get(name);
    check_arg(value.has_value(), "environment variable ", name,
              " is not set; start the program with fleetrun");
    return *value;
  };
  StoreOptions options;
  options.server = parse_endpoint(need("FLEETX_STORE"));
  options.secret = need("FLEETX_JOB_SECRET");
  options.job = env::get("FLEETX_JOB_ID").value_or("");
  options.rank = rank;
  return options;
}

StoreClient::StoreClient(StoreOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
StoreClient::~StoreClient() = default;
const StoreOptions& StoreClient::options() const { return impl_->options(); }

void StoreClient::set(const std::string& key, const std::string& value) {
  impl_->call({.kind = Kind::kSet, .key = key, .value = value}, {}, "set '" + key + "'");
}
std::string StoreClient::get(const std::string& key, Milliseconds timeout) {
  return impl_->call({.kind = Kind::kGet, .key = key}, timeout, "get '" + key + "'").value;
}
int64_t StoreClient::add(const std::string& key, int64_t amount) {
  return impl_->call({.kind = Kind::kAdd, .number = amount, .key = key}, {}, "add '" + key + "'")
      .number;
}
std::vector<std::string> StoreClient::gather(const std::string& name, int index, int count,
                                             const std::string& value, Milliseconds timeout) {
  const Message reply = impl_->call(
      {.kind = Kind::kGather, .number = index, .count = count, .key = name, .value = value},
      timeout, "gather '" + name + "'");
  std::vector<std::string> values = wire::unpack(reply.value);
  check_file(values.size() == static_cast<size_t>(count), "store: gather '", name,
             "': ", values.size(), " values; expected ", count);
  return values;
}
void StoreClient::barrier(const std::string& name, int index, int count, Milliseconds timeout) {
  gather(name, index, count, "", timeout);
}
void StoreClient::abort(const Failure& failure) { impl_->abort(failure); }
void StoreClient::ended(const Failure& end) { impl_->ended(end); }
Failure StoreClient::suspect(const Failure& failure) { return impl_->suspect(failure); }
std::optional<Failure> StoreClient::failure() const { return impl_->failure(); }
bool StoreClient::failed() const { return impl_->failed(); }
StoreClient::Watch StoreClient::on_failure(std::function<void(const Failure&)> fn) {
  return impl_->on_failure(std::move(fn));
}
void StoreClient::leave() { impl_->leave(); }

}  // namespace fleetx::comm
