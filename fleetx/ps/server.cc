#include "fleetx/ps/server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fleetx/base/log.h"
#include "fleetx/ps/local_socket.h"
#include "fleetx/ps/server_impl.h"

namespace fleetx::ps {

using wire::Header;
using wire::Kind;

namespace {

constexpr int kTickMs = 200;                  // how often silent workers are looked for
constexpr std::chrono::seconds kLongWait{5};  // of a pull in sync mode

void add_to(int epoll, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  FLEETX_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl: errno ", errno);
}

// For what is confirmed later.
class Silent final : public Peer {
 public:
  void send(Header, Payload) override {}
};

class OnlyRefusals final : public Peer {
 public:
  explicit OnlyRefusals(PeerPtr peer) : peer_(std::move(peer)) {}
  void send(Header header, Payload payload) override {
    if (header.kind == Kind::kRefused) peer_->send(header, std::move(payload));
  }

 private:
  const PeerPtr peer_;
};

}  // namespace

// --- start and end -------------------------------------------------------------------------------

// A server that keeps a copy of another shares its memory with it, half and half: both get the same
// rows as long as ids are spread evenly.
MemoryLimits Server::Impl::memory_of(const char* whose) const {
  MemoryLimits limits = options_.memory;
  if (!options_.keeps_copy_of.empty()) limits.bytes /= 2;
  if (!limits.disk.empty()) limits.disk += str("/server.", options_.index, ".", whose);
  return limits;
}

Server::Impl::Impl(ServerOptions options)
    : options_((options.job.check(), std::move(options))),
      identity_(identity_of(options_.secret, options_.job_id)),
      tables_(options_.job, options_.index, options_.threads, pool_, memory_of("own")),
      part_(options_.blank     ? wire::Part::kBlank
            : options_.is_copy ? wire::Part::kStandby
                               : wire::Part::kActive) {
  check_arg(options_.index >= 0 && options_.index < options_.job.servers, "server ", options_.index,
            " of a job with ", options_.job.servers, " servers");
  check_arg(!options_.job.delay_compensated || options_.copied_by.empty(),
            "DC-ASGD: a copy of a server does not know what workers have pulled from the server; "
            "use replicas=1, or async without it");
  check_arg(options_.threads > 0, "a server with ", options_.threads, " threads");
  Fd listener;
  if (options_.listen_fd) {
    listener = Fd(*options_.listen_fd);
    fcntl(listener.get(), F_SETFL, fcntl(listener.get(), F_GETFL) | O_NONBLOCK);
    check_arg(listen(listener.get(), 4096) == 0, "server ", options_.index, " cannot listen on ",
              options_.endpoint, ": ", std::strerror(errno));
  } else {
    listener = comm::listen_on(comm::parse_endpoint(options_.endpoint));
  }
  endpoint_ = comm::local_endpoint(listener.get());
  comm::TcpIdentity identity = identity_;
  identity.self = str(name(), " at ", endpoint());
  const auto open = [&](Fd socket) {
    Door& door = doors_.emplace_back();
    door.acceptor = std::make_unique<comm::TcpAcceptor>(
        std::move(socket), door.epoll.get(), identity, kServerRank,
        kFirstWorkerRank + options_.job.workers,
        [this](int rank, std::unique_ptr<comm::Channel> c) { accepted(rank, std::move(c)); });
    add_to(epoll_.get(), door.epoll.get(), EPOLLIN);
  };
  open(std::move(listener));
  if (Fd local = listen_locally(endpoint_)) open(std::move(local));
  if (options_.blank) incomplete_ = options_.keeps_copy_of.empty() ? 1 : 2;
  if (!options_.keeps_copy_of.empty()) {
    const int servers = options_.job.servers;
    check_arg(servers > 1, "copies of servers need two servers or more");
    copy_ = std::make_unique<Server>(
        ServerOptions{.job = options_.job,
                      .index = copy_index(),
                      .endpoint = to_string(comm::Endpoint{endpoint_.host, 0}),
                      .secret = options_.secret,
                      .job_id = options_.job_id,
                      .threads = options_.threads,
                      .memory = memory_of("copy"),
                      .worker_timeout = options_.worker_timeout,
                      .orphan_timeout = options_.orphan_timeout,
                      .copied_by = options_.keeps_copy_of,
                      .is_copy = true,
                      .blank = options_.blank,
                      .on_complete = [this] { complete(); }});
  }
  for (int w = 0; w < options_.job.workers; ++w) sessions_.push_back(std::make_unique<Session>());
  for (int t = 0; t < options_.threads; ++t) {
    loops_.push_back(std::make_unique<Loop>());
    add_to(loops_.back()->epoll.get(), loops_.back()->wake.get(), EPOLLIN);
  }
  add_to(epoll_.get(), wake_.get(), EPOLLIN);
}

void Server::Impl::stop() {
  stop_ = true;
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  for (const auto& loop : loops_) (void)!write(loop->wake.get(), &one, sizeof one);
  const std::scoped_lock lock(slow_mutex_);
  slow_changed_.notify_all();
}

void Server::Impl::run() {
  if (!options_.copied_by.empty()) make_replica();
  serving_since_ = comm::Clock::now();
  next_snapshot_ = serving_since_ + options_.snapshot_interval;
  for (const auto& loop : loops_) loop->thread = std::thread([this, &loop] { serve(*loop); });
  slow_thread_ = std::thread([this] { run_slow(); });
  if (copy_) copy_thread_ = std::thread([this] { run_copy(); });
  log::info("ps", name(), " of ", options_.job.servers, " serves ", options_.job.workers,
            " workers at ", endpoint());
  while (!stop_) {
    epoll_event events[4];
    epoll_wait(epoll_.get(), events, 4, kTickMs);
    for (Door& door : doors_) door.serve();
    look_for_lost();
    look_for_absent();
    look_for_state();
    for (const std::string& wait : tables_.long_waits(kLongWait))
      log::warning("ps", name(), ", after ", kLongWait.count(), " s: ", wait);
    snapshot_if_due();
    check_not_deposed();
    pull_rate_.measure(pulls_);
    push_rate_.measure(pushes_);
  }
  for (const auto& loop : loops_) loop->thread.join();
  slow_thread_.join();
  for (const auto& loop : loops_)
    for (const auto& [fd, connection] : loop->connections) connection->close();
  doors_.clear();  // who knocks is refused, not kept waiting
  replica_.reset();
  if (copy_) finish_copy();
  if (!fatal_.empty()) fail(Error::Kind::kComm, fatal_);
}

// --- connections ---------------------------------------------------------------------------------

void Server::Impl::accepted(int rank, std::unique_ptr<comm::Channel> channel) {
  Loop& loop = *loops_[next_loop_++ % loops_.size()];
  const auto connection = std::make_shared<ServerConnection>(
      std::move(channel), rank - kFirstWorkerRank, loop.epoll.get(), pool_);
  const std::scoped_lock lock(loop.mutex);
  loop.connections[connection->fd()] = connection;
  add_to(loop.epoll.get(), connection->fd(), EPOLLIN);
}

void Server::Impl::serve(Loop& loop) {
  while (!stop_) {
    epoll_event events[64];
    const int n = epoll_wait(loop.epoll.get(), events, 64, -1);
    for (int i = 0; i < n && !stop_; ++i) {
      ConnectionPtr connection;
      {
        const std::scoped_lock lock(loop.mutex);
        const auto it = loop.connections.find(events[i].data.fd);
        if (it == loop.connections.end()) continue;
        connection = it->second;
      }
      if ((events[i].events & EPOLLOUT) != 0) connection->write();
      if ((events[i].events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) read_from(loop, connection);
    }
  }
}

void Server::Impl::read_from(Loop& loop, const ConnectionPtr& connection) {
  Header current;
  try {
    connection->read(
        [&](const Header& h) {
          current = h;
          return payload_bytes(*connection, h);
        },
        [&](Header h, Payload& payload) {
          if ((h.flags & wire::kDeltas) != 0 && has_ids(h.kind)) tables_.expand_ids(h, payload);
          handle(connection, h, payload);
        });
  } catch (const comm::ConnectionLost& e) {
    drop(loop, connection, e.what());
  } catch (const std::exception& e) {
    const auto* error = dynamic_cast<const Error*>(&e);
    refuse(*connection, current, error != nullptr ? error->kind() : Error::Kind::kInternal,
           e.what());
    drop(loop, connection, e.what());
  }
  bytes_in_ += connection->bytes_in.exchange(0);
  bytes_out_ += connection->bytes_out.exchange(0);
}

void Server::Impl::drop(Loop& loop, const ConnectionPtr& connection, const std::string& why) {
  {
    const std::scoped_lock lock(loop.mutex);
    loop.connections.erase(connection->fd());
  }
  connection->close();
  const int worker = connection->worker();
  if (worker < 0) return;
  const std::scoped_lock lock(members_mutex_);
  Session& session = *sessions_[static_cast<size_t>(worker)];
  if (session.connection != connection) return;  // it has made a new one
  session.connection.reset();
  if (session.state != State::kConnected) return;
  session.state = State::kDisconnected;
  session.disconnected = comm::Clock::now();
  log::warning("ps", "server ", options_.index, ": worker ", worker, " ", why);
}

uint64_t Server::Impl::payload_bytes(const ServerConnection& connection, const Header& h) const {
  const auto text = [&] {
    check_arg(h.bytes <= wire::kMaxTextBytes, to_string(h.kind), ": a text of ", h.bytes, " bytes");
    return h.bytes;
  };
  switch (h.kind) {
    case Kind::kPing:
    case Kind::kCopy:
    case Kind::kStandby:
    case Kind::kFollow:
    case Kind::kComplete:
    case Kind::kForget:
    case Kind::kStats: return 0;
    case Kind::kState:
      check_arg(part_ == wire::Part::kBlank && h.bytes <= wire::kMaxStateBytes, to_string(h.kind),
                ": ", h.bytes, " bytes for a server that does not wait for them");
      return h.bytes;
    case Kind::kHello: return text();
    default: break;
  }
  check_arg(connection.worker() >= 0, to_string(h.kind), ": an observer may only look");
  check_arg(connection.greeted, to_string(h.kind), ": a worker says hello first");
  check_arg(!connection.forwarded || part_ != wire::Part::kActive, kTookPlace);
  switch (h.kind) {
    case Kind::kPullDense:
    case Kind::kPushDense:
    case Kind::kSetDense:
    case Kind::kPullSparse:
    case Kind::kPushSparse:
    case Kind::kPushUses: return tables_.payload_bytes(h);
    case Kind::kSave:
    case Kind::kCommit:
    case Kind::kLoad: return text();
    case Kind::kBarrier:
    case Kind::kMeet:
    case Kind::kShrink:
    case Kind::kGoodbye:
    case Kind::kStop: return 0;
    default: fail(Error::Kind::kCorrupt, str(to_string(h.kind), " is not for a server"));
  }
}

void Server::Impl::handle(const ConnectionPtr& connection, const Header& h, Payload& payload) {
  const int worker = connection->worker();
  if (worker >= 0) heard_of(connection);
  switch (h.kind) {
    case Kind::kHello: return on_hello(connection, h, payload);
    case Kind::kPullDense:
    case Kind::kPullSparse: ++pulls_; return tables_.pull({connection, h, worker}, payload);
    case Kind::kPushDense:
    case Kind::kPushSparse:
    case Kind::kPushUses: return on_push(connection, h, payload);
    case Kind::kSetDense: {
      const auto changing = gate_.change();
      tables_.set_dense({std::make_shared<Silent>(), h, worker}, payload);
      return confirm(connection, h, payload.text());
    }
    case Kind::kBarrier: return on_barrier(connection, h);
    case Kind::kMeet: {
      const auto changing = gate_.change();
      tables_.meet(worker, h.count);
      return confirm(connection, h, {});
    }
    case Kind::kGoodbye: return on_goodbye(connection, h);
    case Kind::kPing: return answer(connection, h);
    case Kind::kStop: reply(*connection, h); return stop_all();
    case Kind::kCopy: {
      check_arg(copy_ != nullptr, "server ", options_.index, " keeps no copy of another");
      Payload text;
      text.assign(copy_->endpoint());
      return reply(*connection, h, std::move(text), static_cast<uint64_t>(copy_->part()));
    }
    case Kind::kStandby:
    case Kind::kState:
    case Kind::kFollow:
    case Kind::kComplete:
    case Kind::kForget: return on_state(connection, h, payload);
    case Kind::kStats: {
      Payload text;
      text.assign(encode(stats()));
      return reply(*connection, h, std::move(text));
    }
    default: return on_slow(connection, h, payload);
  }
}

void Server::Impl::on_push(const ConnectionPtr& connection, const Header& h, Payload& payload) {
  const auto changing = gate_.change();
  Session& session = *sessions_[static_cast<size_t>(connection->worker())];
  const std::scoped_lock lock(session.pushing);
  if (h.sequence <= session.last) {
    ++repeated_;
    if (!replica_) return reply(*connection, h);
    return replica_->after_all(connection->worker(), [connection, h] { reply(*connection, h); });
  }
  check_file(h.sequence == session.last + 1, "worker ", connection->worker(), ": push ", h.sequence,
             " comes after push ", session.last);
  if (replica_) {
    // The table takes the payload.
    const std::string copied(replica_->takes_changes() ? payload.text() : std::string_view{});
    tables_.push({std::make_shared<OnlyRefusals>(connection), h, connection->worker()},
                 std::move(payload));
    confirm(connection, h, copied);
  } else {
    tables_.push({connection, h, connection->worker()}, std::move(payload));
  }
  session.applied = session.last = h.sequence;
  ++pushes_;
}

Server::Server(ServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Server::~Server() = default;
std::string Server::endpoint() const { return impl_->endpoint(); }
void Server::load(const std::string& folder) { impl_->load(folder); }
void Server::restore() { impl_->restore(); }
void Server::run() { impl_->run(); }
wire::Part Server::part() const { return impl_->part(); }
void Server::stop() { impl_->stop_all(); }
ServerStats Server::stats() const { return impl_->stats(); }

}  // namespace fleetx::ps
