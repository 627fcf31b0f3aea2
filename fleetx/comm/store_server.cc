#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include "fleetx/base/error.h"
#include "fleetx/base/log.h"
#include "fleetx/comm/authenticate.h"
#include "fleetx/comm/store.h"
#include "fleetx/comm/store_wire.h"
#include "fleetx/comm/tcp_tls.h"

namespace fleetx::comm {
namespace {

using wire::Kind;
using wire::Message;

constexpr Milliseconds kAuthTimeout{10'000};
// How long the store collects reports of hanging ranks before it picks one.
constexpr Milliseconds kSuspectWindow{300};
constexpr size_t kMaxQueuedBytes = size_t{64} << 20;
constexpr size_t kEntryOverhead = 128;  // bookkeeping bytes counted per entry
constexpr int kMaxLoggedRejections = 10;
constexpr uint64_t kListener = 0, kWake = 1, kFirstConnection = 2;

struct Connection {
  std::unique_ptr<Channel> channel;
  wire::Reader reader;
  Challenge challenge;
  std::string out;
  size_t sent = 0;
  Deadline auth_deadline = after(kAuthTimeout);
  bool authenticated = false, left = false, wants_write = false;
  int rank = -1;
  int64_t pid = 0;
  std::string host;
};

// A gather that waits for more callers.
struct PendingGather {
  struct Part {
    uint64_t connection;
    uint32_t request;
    std::string value;
  };
  int64_t count = 0;
  std::map<int64_t, Part> parts;
};

Failure failure_of(const Message& m, bool hangs) {
  return {static_cast<int>(m.number), m.key, m.count, m.value, hangs};
}

}  // namespace

class StoreServer::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {
    check_arg(!options_.secret.empty(), "store: the job's secret is empty");
    listener_ = options_.listen_fd >= 0 ? Fd(options_.listen_fd) : listen_on(options_.listen);
    endpoint_ = local_endpoint(listener_.get());
    fcntl(listener_.get(), F_SETFL, fcntl(listener_.get(), F_GETFL) | O_NONBLOCK);
    fcntl(listener_.get(), F_SETFD, FD_CLOEXEC);
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    watch(listener_.get(), kListener, EPOLL_CTL_ADD, EPOLLIN);
    watch(wake_.get(), kWake, EPOLL_CTL_ADD, EPOLLIN);
    thread_ = std::thread([this] { serve(); });
  }

  ~Impl() {
    stop_ = true;
    wake();
    thread_.join();
  }

  const Endpoint& endpoint() const { return endpoint_; }

  void abort(const Failure& failure) {
    {
      std::scoped_lock lock(mutex_);
      if (failure_ || asked_) return;
      asked_ = failure;
    }
    wake();
  }

  void ended(const Failure& end) {
    {
      std::scoped_lock lock(mutex_);
      ended_.push_back(end);
    }
    wake();
  }

  std::optional<Failure> failure() const {
    std::scoped_lock lock(mutex_);
    return failure_ ? failure_ : asked_;
  }

 private:
  void wake() {
    const uint64_t one = 1;
    if (write(wake_.get(), &one, sizeof one) < 0) return;  // full: it will wake up
  }

  void watch(int fd, uint64_t id, int action, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    FLEETX_CHECK(epoll_ctl(epoll_.get(), action, fd, &event) == 0, "epoll_ctl: errno ", errno);
  }

  void serve() {
    while (!stop_) {
      epoll_event events[64];
      const int n = epoll_wait(epoll_.get(), events, 64, timeout());
      for (int i = 0; i < n; ++i) {
        const uint64_t id = events[i].data.u64;
        if (id == kListener)
          accept_all();
        else if (id == kWake)
          on_wake();
        else
          on_ready(id, events[i].events);
      }
      drop_unauthenticated();
      resolve_suspects();
      close_connections();
    }
  }

  int timeout() const {
    Deadline first = after(Milliseconds(60'000));
    for (const uint64_t id : unauthenticated_)
      first = std::min(first, connections_.at(id).auth_deadline);
    if (!suspects_.empty()) first = std::min(first, suspects_due_);
    return left_ms(first);
  }

  void accept_all() {
    for (;;) {
      Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) return;
      if (connections_.size() >= options_.max_connections) continue;
      const uint64_t id = next_id_++;
      watch(fd.get(), id, EPOLL_CTL_ADD, EPOLLIN);
      Connection& c = connections_[id];
      c.channel = Channel::over(std::move(fd), tls_.get(), true);
      tune(c.channel->fd());
      unauthenticated_.insert(id);
      send(id, c.challenge.message());
    }
  }

  void on_wake() {
    uint64_t count = 0;
    if (read(wake_.get(), &count, sizeof count) < 0) return;
    std::optional<Failure> asked;
    std::vector<Failure> ended;
    {
      std::scoped_lock lock(mutex_);
      asked.swap(asked_);
      ended.swap(ended_);
    }
    if (asked) publish(*asked);
    for (const Failure& end : ended) on_ended(end);
  }

  void on_ended(const Failure& end) {
    if (!joined_.count(end.rank)) publish(end);
  }

  void on_ready(uint64_t id, uint32_t events) {
    if (connections_.find(id) == connections_.end() || closing_.count(id)) return;
    if (events & EPOLLOUT) flush(id);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(id);
  }

  // One read per event, so that a client that sends endlessly does not starve the others.
  void receive(uint64_t id) {
    Connection& c = connections_.at(id);
    char buffer[65536];
    const iovec part{buffer, sizeof buffer};
    try {
      size_t n = 0;
      do {
        n = c.channel->read({&part, 1});
        c.reader.feed({buffer, n});
        while (auto message = c.reader.next()) {
          if (closing_.count(id)) return;
          if (c.authenticated)
            handle(id, *message);
          else
            check_proof(id, *message);
        }
      } while (n > 0 && c.channel->has_decrypted());  // of which epoll does not know
      if (!c.authenticated) flush(id);                // the challenge, once TLS has shaken hands
    } catch (const ConnectionLost&) {
      closing_.insert(id);
    } catch (const Error& e) {
      // Anyone can connect: limit what such clients add to the log.
      if (c.authenticated || ++rejections_ <= kMaxLoggedRejections)
        log::warning("store", c.authenticated ? str("rank ", c.rank) : "an unauthenticated client",
                     " was disconnected: ", e.what());
      closing_.insert(id);
    }
  }

  void check_proof(uint64_t id, const Message& m) {
    Connection& c = connections_.at(id);
    const Message welcome =
        c.challenge.check(m, options_.secret, options_.job + c.channel->binding());
    c.authenticated = true;
    c.rank = static_cast<int>(m.number);
    joined_.insert(c.rank);
    c.pid = m.count;
    c.host = m.key;
    c.reader.set_max_bytes(wire::kMaxBytes);
    unauthenticated_.erase(id);
    send(id, welcome);
    if (const auto failure = this->failure()) send_failure(id, *failure);
  }

  void handle(uint64_t id, const Message& m) {
    switch (m.kind) {
      case Kind::kSet: return set(id, m);
      case Kind::kGet: return get(id, m);
      case Kind::kAdd: return add(id, m);
      case Kind::kGather: return gather(id, m);
      case Kind::kCancel: return cancel(id, m);
      case Kind::kAbort: return publish(failure_of(m, false));
      case Kind::kEnded: return on_ended(failure_of(m, false));
      case Kind::kSuspect: return suspect(id, m);
      case Kind::kLeave: connections_.at(id).left = true; return reply(id, m.id);
      default: check_file(false, "a message kind that only the server sends");
    }
  }

  void reply(uint64_t id, uint32_t request, const std::string& value = "", int64_t number = 0) {
    send(id, {.kind = Kind::kReply, .id = request, .number = number, .value = value});
  }
  void refuse(uint64_t id, uint32_t request, const std::string& why) {
    send(id, {.kind = Kind::kRefused, .id = request, .value = why});
  }

  // Accounts for the memory of an entry; false if the store is full.
  bool reserve(uint64_t id, const Message& m) {
    const size_t bytes = m.key.size() + m.value.size() + kEntryOverhead;
    if (used_bytes_ + bytes > options_.max_bytes) {
      refuse(id, m.id, str("the store is full (", options_.max_bytes, " bytes)"));
      return false;
    }
    used_bytes_ += bytes;
    return true;
  }

  void set(uint64_t id, const Message& m) {
    const auto old = values_.find(m.key);
    if (old != values_.end()) used_bytes_ -= m.key.size() + old->second.size() + kEntryOverhead;
    if (!reserve(id, m)) {
      if (old != values_.end()) values_.erase(old);
      return;
    }
    values_[m.key] = m.value;
    reply(id, m.id);
    const auto waiting = waiting_.extract(m.key);
    if (waiting.empty()) return;
    for (const auto& [connection, request] : waiting.mapped()) reply(connection, request, m.value);
  }

  void get(uint64_t id, const Message& m) {
    const auto it = values_.find(m.key);
    if (it != values_.end()) return reply(id, m.id, it->second);
    if (reserve(id, m)) waiting_[m.key].emplace_back(id, m.id);
  }

  void add(uint64_t id, const Message& m) {
    const auto it = counters_.find(m.key);
    if (it == counters_.end() && !reserve(id, m)) return;
    int64_t sum = 0;
    if (__builtin_add_overflow(counters_[m.key], m.number, &sum))
      return refuse(id, m.id, "the counter would overflow");
    counters_[m.key] = sum;
    reply(id, m.id, "", sum);
  }

  void gather(uint64_t id, const Message& m) {
    if (m.count < 1 || m.number < 0 || m.number >= m.count)
      return refuse(id, m.id, str("index ", m.number, " of ", m.count));
    PendingGather& pending = gathers_[m.key];
    if (pending.count == 0) pending.count = m.count;
    if (pending.count != m.count)
      return refuse(id, m.id,
                    str("count ", m.count, " here, ", pending.count, " at other callers"));
    if (pending.parts.count(m.number))
      return refuse(id, m.id, str("index ", m.number, " has called already"));
    if (!reserve(id, m)) return;
    pending.parts[m.number] = {id, m.id, m.value};
    if (static_cast<int64_t>(pending.parts.size()) < pending.count) return;
    const auto done = gathers_.extract(m.key);
    std::vector<std::string> values;
    for (const auto& [index, part] : done.mapped().parts) values.push_back(part.value);
    const std::string all = wire::pack(values);
    for (const auto& [index, part] : done.mapped().parts) {
      used_bytes_ -= m.key.size() + part.value.size() + kEntryOverhead;
      if (all.size() + wire::kMaxKeyBytes > wire::kMaxBytes)
        refuse(part.connection, part.request,
               str("all values together are ", all.size(), " bytes"));
      else
        reply(part.connection, part.request, all);
    }
  }

  // Replies with the missing indices of a gather, for the error message of the caller.
  void cancel(uint64_t id, const Message& m) {
    const auto request = static_cast<uint32_t>(m.number);
    std::string missing;
    for (auto& [name, pending] : gathers_) {
      const auto part = std::find_if(
          pending.parts.begin(), pending.parts.end(),
          [&](const auto& p) { return p.second.connection == id && p.second.request == request; });
      if (part == pending.parts.end()) continue;
      for (int64_t i = 0; i < pending.count && missing.size() < 100; ++i)
        if (!pending.parts.count(i)) missing += str(missing.empty() ? "" : ", ", i);
      break;
    }
    drop_requests(id, &request);
    reply(id, m.id, missing);
  }

  // Drops all waiting requests of a connection, or one of them.
  void drop_requests(uint64_t id, const uint32_t* request) {
    const auto is_it = [&](uint64_t connection, uint32_t r) {
      return connection == id && (request == nullptr || r == *request);
    };
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      const size_t gone = std::erase_if(
          it->second, [&](const auto& entry) { return is_it(entry.first, entry.second); });
      used_bytes_ -= gone * (it->first.size() + kEntryOverhead);
      it = it->second.empty() ? waiting_.erase(it) : std::next(it);
    }
    for (auto it = gathers_.begin(); it != gathers_.end();) {
      std::erase_if(it->second.parts, [&](const auto& entry) {
        const PendingGather::Part& part = entry.second;
        if (!is_it(part.connection, part.request)) return false;
        used_bytes_ -= it->first.size() + part.value.size() + kEntryOverhead;
        return true;
      });
      it = it->second.parts.empty() ? gathers_.erase(it) : std::next(it);
    }
  }

  void suspect(uint64_t id, const Message& m) {
    if (failure()) return;
    if (suspects_.empty()) suspects_due_ = after(kSuspectWindow);
    waiters_.insert(connections_.at(id).rank);
    suspects_.push_back(failure_of(m, true));
  }

  void resolve_suspects() {
    if (suspects_.empty() || Clock::now() < suspects_due_) return;
    // A rank that waits itself comes last; among the others, the one that most ranks report.
    const auto weight = [&](const Failure& s) {
      const auto reports = std::count_if(suspects_.begin(), suspects_.end(),
                                         [&](const Failure& o) { return o.rank == s.rank; });
      return std::pair(!waiters_.count(s.rank), reports);
    };
    const Failure failed = *std::max_element(
        suspects_.begin(), suspects_.end(),
        [&](const Failure& a, const Failure& b) { return weight(a) < weight(b); });
    suspects_.clear();
    publish(failed);
  }

  void publish(Failure failure) {
    for (const auto& [id, c] : connections_)  // the reporter may not know where the rank runs
      if (c.authenticated && c.rank >= 0 && c.rank == failure.rank) {
        if (failure.host.empty()) failure.host = c.host;
        if (failure.pid == 0) failure.pid = c.pid;
      }
    {
      std::scoped_lock lock(mutex_);
      if (failure_) return;
      failure_ = failure;
    }
    for (const auto& [id, c] : connections_)
      if (c.authenticated) send_failure(id, failure);
    if (options_.on_failure) options_.on_failure(failure);
  }

  void send_failure(uint64_t id, const Failure& f) {
    send(id, {.kind = Kind::kFailure,
              .id = f.hangs,
              .number = f.rank,
              .count = f.pid,
              .key = f.host,
              .value = f.what});
  }

  void send(uint64_t id, const Message& m) {
    const auto it = connections_.find(id);
    if (it == connections_.end()) return;
    it->second.out += wire::encode(m);
    flush(id);
  }

  void flush(uint64_t id) {
    Connection& c = connections_.at(id);
    try {
      while (c.sent < c.out.size()) {
        const iovec part{c.out.data() + c.sent, c.out.size() - c.sent};
        const size_t n = c.channel->write({&part, 1});
        if (n == 0) break;
        c.sent += n;
      }
    } catch (const ConnectionLost&) {
      closing_.insert(id);
      return;
    }
    const bool rest = c.sent < c.out.size();
    if (!rest) {
      c.out.clear();
      c.sent = 0;
    } else if (c.out.size() - c.sent > kMaxQueuedBytes) {
      closing_.insert(id);  // the client does not read
    }
    // What is left of a challenge waits for the other side, not for room.
    const bool waits = rest && c.authenticated;
    if (waits != c.wants_write) {
      c.wants_write = waits;
      watch(c.channel->fd(), id, EPOLL_CTL_MOD, EPOLLIN | (waits ? uint32_t{EPOLLOUT} : 0u));
    }
  }

  void drop_unauthenticated() {
    const auto now = Clock::now();
    for (const uint64_t id : unauthenticated_)
      if (connections_.at(id).auth_deadline <= now) closing_.insert(id);
  }

  void close_connections() {
    while (!closing_.empty()) {
      const uint64_t id = *closing_.begin();
      closing_.erase(closing_.begin());
      unauthenticated_.erase(id);
      drop_requests(id, nullptr);
      const auto node = connections_.extract(id);
      if (node.empty()) continue;
      const Connection& c = node.mapped();
      if (c.authenticated && !c.left && c.rank >= 0)
        publish({c.rank, c.host, c.pid, "is gone: its connection to the store ended", false});
    }
  }

  Options options_;
  const std::shared_ptr<const TlsContext> tls_ = TlsContext::from_environment();
  Fd listener_, epoll_, wake_;
  Endpoint endpoint_;
  std::atomic<bool> stop_ = false;

  mutable std::mutex mutex_;  // guards the three below; the rest belongs to the thread
  std::optional<Failure> failure_, asked_;
  std::vector<Failure> ended_;

  uint64_t next_id_ = kFirstConnection;
  std::unordered_map<uint64_t, Connection> connections_;
  std::set<uint64_t> unauthenticated_, closing_;
  std::set<int> joined_;  // ranks that have connected
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, int64_t> counters_;
  std::unordered_map<std::string, std::vector<std::pair<uint64_t, uint32_t>>> waiting_;
  std::unordered_map<std::string, PendingGather> gathers_;
  std::vector<Failure> suspects_;
  std::set<int> waiters_;
  Deadline suspects_due_;
  size_t used_bytes_ = 0;
  int rejections_ = 0;

  std::thread thread_;
};

StoreServer::StoreServer(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
StoreServer::~StoreServer() = default;
Endpoint StoreServer::endpoint() const { return impl_->endpoint(); }
void StoreServer::abort(const Failure& failure) { impl_->abort(failure); }
void StoreServer::ended(const Failure& end) { impl_->ended(end); }
std::optional<Failure> StoreServer::failure() const { return impl_->failure(); }

std::string to_string(const Failure& f) {
  const std::string who = f.rank >= 0 ? str("rank ", f.rank) : "the launcher";
  return str(who, f.host.empty() ? "" : " on host " + f.host,
             f.pid > 0 ? str(" (pid ", f.pid, ")") : "", " ", f.what);
}

std::string make_secret() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char byte : wire::random_bytes(32)) {
    hex += kDigits[(byte >> 4) & 15];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace fleetx::comm
