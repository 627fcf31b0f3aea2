#include "fleetx/comm/tcp_mesh.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/comm/call_queue.h"
#include "fleetx/comm/interruptible_wait.h"

namespace fleetx::comm {
namespace {

// A blocking wake-up costs some 40 us: whoever waits for a short message looks this long before it
// sleeps, and gives up its core in between. A thread beside the computation looks less. Whoever
// waits for long messages looks as well while that is what such waits take: on fast links, where a
// chunk of a collective (slice_exchange.cc) comes in 200 us.
constexpr size_t kShortBytes = size_t{64} << 10;
constexpr std::chrono::microseconds kSocketSpin{200}, kSocketSpinBesideStep{15}, kNoSpin{0};
constexpr int kLooksPerYield = 4;
constexpr int kMemory = 4;  // of waits that were short
// How often a sleeping thread calls its check, and looks for hosts that do not answer.
constexpr Milliseconds kCheckPeriod{50}, kSilencePeriod{200};
constexpr uint64_t kWakeId = 0, kConnectionsId = 1;
// What a rank answers to a connection: it is the one of the pair, or the answerer makes that.
constexpr char kTaken = 'y', kMineCounts = 'n';
// How long the end of a mesh waits for what the others have not taken yet.
constexpr Milliseconds kLinger{2'000};

}  // namespace

TcpMesh::TcpMesh(int rank, Fd listener, std::vector<Endpoint> addresses, TcpIdentity identity)
    : rank_(rank),
      identity_(std::move(identity)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      thread_epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      acceptor_(std::move(listener), thread_epoll_.get(), identity_, rank,
                static_cast<int>(addresses.size()),
                [this](int peer, std::unique_ptr<Channel> channel) {
                  accepted(peer, std::move(channel));
                }),
      peers_(addresses.size()) {
  for (size_t r = 0; r < addresses.size(); ++r) peers_[r].address = std::move(addresses[r]);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeId;
  epoll_ctl(thread_epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  thread_ = std::thread([this] { serve(); });
}

TcpMesh::~TcpMesh() {
  stop_ = true;
  wake_thread();
  thread_.join();
  finish_sending(after(kLinger));
}

void TcpMesh::watch(int fd, int action, int peer, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(peer);
  FLEETX_CHECK(epoll_ctl(epoll_.get(), action, fd, &event) == 0, "epoll_ctl: errno ", errno);
}

void TcpMesh::finish(TcpRequest& request) { request.done.store(true, std::memory_order_release); }

void TcpMesh::fail(TcpRequest& request, const ConnectionLost& why) {
  if (request.done) return;
  request.error = why.what();
  request.failure =
      why.unreachable ? TcpRequest::Failure::kUnreachable : TcpRequest::Failure::kClosed;
  finish(request);
}

void TcpMesh::fail_mismatch(TcpRequest& request, uint64_t bytes_sent) {
  request.error = str("sent ", bytes_sent, " bytes where ", request.header.bytes, " are expected");
  request.failure = TcpRequest::Failure::kMismatch;
  finish(request);
}

// --- connections --------------------------------------------------------------------------------

void TcpMesh::connect(int peer, Deadline deadline, const Check& check) {
  const std::scoped_lock one_at_a_time(connecting_);
  {
    const std::scoped_lock lock(mutex_);
    if (at(peer).link || at(peer).lost) return;
    at(peer).connecting = true;
  }
  struct Attempt {
    TcpMesh& mesh;
    Peer& peer;
    ~Attempt() {
      const std::scoped_lock lock(mesh.mutex_);
      peer.connecting = false;
    }
  } const attempt{*this, at(peer)};
  auto channel = connect_to_rank(at(peer).address, identity_, rank_, peer, deadline, check);
  std::string verdict;
  read_some(*channel, verdict, 1, deadline, check);
  if (verdict[0] != kTaken) return await_connection_of(peer, deadline, check);
  const std::scoped_lock lock(mutex_);
  add_link(peer, std::move(channel));
}

// It connects at the same time, and its connection counts.
void TcpMesh::await_connection_of(int peer, Deadline deadline, const Check& check) {
  for (std::unique_lock lock(mutex_); !at(peer).link && !at(peer).lost;) {
    if (Clock::now() >= deadline) fleetx::fail(Error::Kind::kTimeout, "it does not connect");
    changed_.wait_for(lock, kCheckPeriod);
    lock.unlock();
    check();
    lock.lock();
  }
}

void TcpMesh::accepted(int peer, std::unique_ptr<Channel> channel) {
  const std::scoped_lock lock(mutex_);
  const bool is_taken = !at(peer).link && !at(peer).lost && (peer < rank_ || !at(peer).connecting);
  char verdict = is_taken ? kTaken : kMineCounts;
  const iovec part{&verdict, 1};
  try {
    // Into a socket that has room: one byte is written.
    if (channel->write({&part, 1}) == 1 && is_taken) add_link(peer, std::move(channel));
  } catch (const ConnectionLost&) {  // its own attempt fails
  }
  changed_.notify_all();
}

void TcpMesh::add_link(int peer, std::unique_ptr<Channel> channel) {
  watch(channel->fd(), EPOLL_CTL_ADD, peer, EPOLLIN);
  at(peer).link = std::make_unique<Link>();
  at(peer).link->channel = std::move(channel);
  ++links_;
  if (at(peer).link->channel->has_decrypted()) receive(peer);
}

void TcpMesh::lose(int peer, const ConnectionLost& why) {
  close_for_writing(peer, why);
  Peer& p = at(peer);
  std::erase_if(p.early, [](const TcpRequestPtr& r) { return !r->done; });  // never complete now
  if (p.link && p.link->message) fail(*p.link->message, why);
  for (const TcpRequestPtr& r : p.expected) fail(*r, why);
  p.expected.clear();
  if (p.link) --links_;
  p.link.reset();
}

void TcpMesh::close_for_writing(int peer, const ConnectionLost& why) {
  Peer& p = at(peer);
  if (!p.lost) p.lost = why;
  if (!p.link) return;
  for (const TcpRequestPtr& r : p.link->queue) fail(*r, why);
  p.link->queue.clear();
  p.link->is_closed = true;
  set_blocked(peer, false);
}

// What has been written still leaves after the end of this process, unless something comes that
// nobody reads: then the system gives up the connection. Such is read and dropped here until all
// is on its way.
void TcpMesh::finish_sending(Deadline deadline) {
  std::array<char, size_t{64} << 10> dropped;
  const iovec part{dropped.data(), dropped.size()};
  for (const Peer& p : peers_) {
    if (!p.link) continue;
    try {
      for (int unsent = 0;; std::this_thread::sleep_for(Milliseconds(1))) {
        const bool in_time = Clock::now() < deadline;
        while (p.link->channel->read({&part, 1}) > 0 && in_time) continue;
        const bool known = ioctl(p.link->channel->fd(), SIOCOUTQNSD, &unsent) == 0;
        if (!known || unsent == 0 || !in_time) break;
      }
    } catch (const ConnectionLost&) {  // it has gone first
    }
  }
}

void TcpMesh::look_for_silence() {
  if (Clock::now() < next_look_) return;
  next_look_ = after(kSilencePeriod);
  for (int r = 0; r < static_cast<int>(peers_.size()); ++r)
    if (at(r).link && at(r).link->channel->is_silent())
      lose(r, ConnectionLost("is not reachable: it acknowledges nothing", true));
}

// --- sending ------------------------------------------------------------------------------------

TcpRequestPtr TcpMesh::post_send(int peer, uint64_t group, uint64_t label, const void* data,
                                 size_t bytes, Deadline deadline, const Check& check) {
  auto request = std::make_shared<TcpRequest>();
  request->peer = peer;
  request->sends = true;
  request->header = {group, label, bytes};
  request->data = const_cast<char*>(static_cast<const char*>(data));
  std::unique_lock lock(mutex_);
  Peer& p = at(peer);
  if (!p.link && !p.lost) {
    lock.unlock();
    connect(peer, deadline, check);
    lock.lock();
  }
  if (!p.link || p.link->is_closed) {
    fail(*request, *p.lost);
    return request;
  }
  p.link->queue.push_back(request);
  if (!p.link->blocked) flush(peer);
  return request;
}

void TcpMesh::set_blocked(int peer, bool blocked) {
  Link& link = *at(peer).link;
  if (blocked == link.blocked) return;
  link.blocked = blocked;
  blocked_ += blocked ? 1 : -1;
  watch(link.channel->fd(), EPOLL_CTL_MOD, peer, EPOLLIN | (blocked ? uint32_t{EPOLLOUT} : 0u));
}

// Writes what the socket takes.
void TcpMesh::flush(int peer) {
  Link& out = *at(peer).link;
  bool blocked = false;
  try {
    for (size_t moved = 0; !out.queue.empty() && moved < kTurnBytes && !blocked;) {
      std::array<iovec, 16> parts;
      size_t count = 0;
      for (const TcpRequestPtr& r : out.queue) {
        if (count + 2 > parts.size()) break;
        const size_t in_header = std::min(r->moved, sizeof r->header);
        if (in_header < sizeof r->header)
          parts[count++] = {reinterpret_cast<char*>(&r->header) + in_header,
                            sizeof r->header - in_header};
        const size_t in_data = r->moved - in_header;
        if (in_data < r->header.bytes)
          parts[count++] = {r->data + in_data, r->header.bytes - in_data};
      }
      size_t n = out.channel->write({parts.data(), count});
      moved += n;
      blocked = n < bytes_of({parts.data(), count});
      if (n == 0) break;
      while (n > 0) {
        TcpRequest& r = *out.queue.front();
        const size_t rest = sizeof r.header + r.header.bytes - r.moved;
        const size_t now = std::min(n, rest);
        r.moved += now;
        n -= now;
        if (now < rest) break;
        finish(r);
        out.queue.pop_front();
      }
    }
  } catch (const ConnectionLost& e) {
    return close_for_writing(peer, e);
  }
  // What is left waits for the socket: also where only its turn is over.
  set_blocked(peer, blocked || !out.queue.empty());
}

bool TcpMesh::all_sent() const {
  return std::none_of(peers_.begin(), peers_.end(),
                      [](const Peer& p) { return p.link && !p.link->queue.empty(); });
}

// --- progress -----------------------------------------------------------------------------------

// Waits for events, without the lock, and handles them. False: there were none.
bool TcpMesh::drive(std::unique_lock<std::mutex>& lock, int timeout_ms) {
  std::array<epoll_event, 64> events;
  if (timeout_ms > 0) {
    driving_ = true;
    lock.unlock();
  }
  const int n =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  if (timeout_ms > 0) {
    lock.lock();
    driving_ = false;
  }
  for (int i = 0; i < n; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const auto peer = static_cast<int>(event.data.u64);
    if (at(peer).link && event.events & EPOLLOUT) flush(peer);
    if (at(peer).link && event.events & ~uint32_t{EPOLLOUT}) receive(peer);
  }
  if (n > 0 && waiting_ > 1) changed_.notify_all();
  return n > 0;
}

// Without sleeping. What is waited for is read without asking whether it is there: if it is not,
// that costs as much as the question. The others have their turn now and then.
bool TcpMesh::look(std::unique_lock<std::mutex>& lock, const TcpRequest& request, int turn) {
  constexpr int kOthersTurn = 8;
  const bool reads = !request.sends && at(request.peer).link != nullptr;
  const bool others = links_ > 1 && turn % kOthersTurn == kOthersTurn - 1;
  if (!reads || blocked_ > 0 || others) return drive(lock, 0);
  if (!receive(request.peer)) return false;
  if (waiting_ > 1) changed_.notify_all();
  return true;
}

// What surely comes before a message is complete.
size_t TcpMesh::missing_bytes(const TcpRequest& request) {
  const Link& in = *at(request.peer).link;
  if (in.message.get() == &request) return request.header.bytes - request.moved;
  const size_t before = in.message ? in.message->header.bytes - in.message->moved : 0;
  return before + sizeof in.header - in.header_bytes + request.header.bytes;
}

void TcpMesh::wake_at(int peer, size_t bytes) {
  Link& in = *at(peer).link;
  if (in.wakes_at == bytes) return;
  in.wakes_at = bytes;
  in.channel->wake_at(bytes);
}

// A packet that does not complete the message need not wake anybody: on a slow link there would be
// several for every chunk, each of which interrupts a computation on the same core.
void TcpMesh::sleep(std::unique_lock<std::mutex>& lock, const TcpRequest& request, int timeout_ms) {
  const bool reads = !request.sends && at(request.peer).link != nullptr;
  if (reads) wake_at(request.peer, waiting_ == 1 ? missing_bytes(request) : 1);
  if (drive(lock, timeout_ms) || !reads || !at(request.peer).link) return;
  // A peer that makes another call may send less than that.
  if (receive(request.peer) && waiting_ > 1) changed_.notify_all();
}

bool TcpMesh::wait(const TcpRequest& request, Deadline deadline, const Check& check) {
  const auto done = [&] { return request.done.load(std::memory_order_acquire); };
  if (done()) return true;
  std::unique_lock lock(mutex_);
  ++waiting_;
  struct Leave {
    TcpMesh& mesh;
    std::unique_lock<std::mutex>& lock;
    const int peer;
    ~Leave() {
      if (!lock.owns_lock()) lock.lock();
      // Below that number of bytes the kernel acknowledges at once, with a packet of its own.
      if (mesh.at(peer).link) mesh.wake_at(peer, 1);
      // Another one has to drive now.
      if (--mesh.waiting_ > 0) mesh.changed_.notify_all();
      if (mesh.waiting_ == 0 && mesh.background_) mesh.wake_thread();
    }
  } leave{*this, lock, request.peer};
  const bool is_short = request.header.bytes <= kShortBytes;
  const bool beside = CallQueue::on_thread();
  const bool spins = is_short || (!beside && short_waits_ > 0);
  const auto begin = Clock::now();
  const Deadline spin_end = begin + (!spins   ? kNoSpin
                                     : beside ? kSocketSpinBesideStep
                                              : kSocketSpin);
  Deadline next_check = begin + kCheckPeriod;
  for (int turn = 0; !done(); ++turn) {
    const auto now = Clock::now();
    if (now >= next_check) {
      next_check = now + kCheckPeriod;
      look_for_silence();
      if (done()) break;
      if (now >= deadline) return false;
      lock.unlock();
      check();
      lock.lock();
    }
    if (driving_) {  // what this one waits for may come first
      if (!request.sends && at(request.peer).link) wake_at(request.peer, 1);
      changed_.wait_for(lock, kCheckPeriod, [&] { return done() || !driving_; });
    } else if (spin_end > now) {
      if (look(lock, request, turn) || turn % kLooksPerYield != 0) continue;
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    } else {
      const Milliseconds period = interruptible() ? kInterruptPeriod : kCheckPeriod;
      sleep(lock, request, std::max(1, left_ms(std::min(deadline, after(period)))));
    }
  }
  if (!is_short && !beside)
    short_waits_ =
        std::clamp(short_waits_ + (Clock::now() - begin < kSocketSpin ? 1 : -1), 0, kMemory);
  return true;
}

void TcpMesh::abandon(const TcpRequestPtr& request) {
  if (request->done.load(std::memory_order_acquire)) return;
  const std::scoped_lock lock(mutex_);
  if (request->done) return;
  Peer& p = at(request->peer);
  TcpRequest& r = *request;
  if (!r.sends) {
    std::erase(p.expected, request);
    // The rest of a message whose receiver has gone has to be read nevertheless.
    if (!p.link || p.link->message != request) return;
    r.kept.reset(new char[r.header.bytes]);
    r.data = r.kept.get();
    return;
  }
  if (!p.link) return;
  if (r.moved == 0 && request != p.link->queue.front()) {  // TLS may have begun with the first
    std::erase(p.link->queue, request);
    return;
  }
  r.kept.reset(new char[r.header.bytes]);
  std::memcpy(r.kept.get(), r.data, r.header.bytes);
  r.data = r.kept.get();
}

void TcpMesh::send_in_background() {
  const std::scoped_lock lock(mutex_);
  if (background_ || all_sent()) return;
  background_ = true;
  if (waiting_ == 0) wake_thread();
}

void TcpMesh::wake_thread() {
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) return;  // full: it will wake up
}

void TcpMesh::serve() {
  bool drives = false;  // whether epoll_ is watched by this thread
  while (!stop_) {
    {
      const std::scoped_lock lock(mutex_);
      if (background_ && all_sent()) background_ = false;
      if (drives != (background_ && waiting_ == 0)) {
        drives = !drives;
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = kConnectionsId;
        epoll_ctl(thread_epoll_.get(), drives ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, epoll_.get(),
                  &event);
      }
    }
    std::array<epoll_event, 16> events;
    const int n = epoll_wait(thread_epoll_.get(), events.data(), static_cast<int>(events.size()),
                             std::max(1, left_ms(acceptor_.drop_late())));
    for (int i = 0; i < n; ++i) {
      const uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == kWakeId) {
        uint64_t count = 0;
        if (read(wake_.get(), &count, sizeof count) < 0) continue;
      } else if (id == kConnectionsId) {
        std::unique_lock lock(mutex_);
        if (waiting_ == 0) drive(lock, 0);
      } else {
        acceptor_.on_event(id);
      }
    }
  }
}

}  // namespace fleetx::comm
