#include "fleetx/comm/tcp_acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/log.h"

namespace fleetx::comm {
namespace {

using wire::Message;

constexpr Milliseconds kProofTimeout{10'000};
constexpr size_t kMaxGuests = 4096;  // that have not proved themselves
constexpr int kMaxLoggedRefusals = 10;

void watch(int epoll, int fd, uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  FLEETX_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl: errno ", errno);
}

}  // namespace

// With the binding, nobody can stand between two ranks and pass their proofs on.
std::string TcpIdentity::context(int from, int to, const Channel& channel) const {
  return str("tcp ", job, " from ", from, " to ", to, " ", channel.binding());
}

TcpAcceptor::TcpAcceptor(Fd listener, int epoll, TcpIdentity identity, int rank, int size,
                         OnRank on_rank)
    : listener_(std::move(listener)),
      epoll_(epoll),
      identity_(std::move(identity)),
      rank_(rank),
      size_(size),
      on_rank_(std::move(on_rank)) {
  enlarge_buffers(listener_.get());
  watch(epoll_, listener_.get(), kFirstId);
}

void TcpAcceptor::on_event(uint64_t id) {
  if (id == kFirstId)
    accept_all();
  else
    serve(id);
}

void TcpAcceptor::accept_all() {
  for (;;) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (guests_.size() >= kMaxGuests) continue;
    const uint64_t id = next_id_++;
    watch(epoll_, fd.get(), id);
    Guest& guest = guests_[id];
    guest.channel = Channel::over(std::move(fd), identity_.tls.get(), true);
    guest.deadline = after(kProofTimeout);
    serve(id);
  }
}

void TcpAcceptor::serve(uint64_t id) {
  const auto it = guests_.find(id);
  if (it == guests_.end()) return;
  try {
    if (!advance(it->second)) return;
    guests_.erase(it);
  } catch (const std::exception& e) {
    refuse(id, e.what());
  }
}

// True: the channel has been given away.
bool TcpAcceptor::advance(Guest& guest) {
  // These messages are shorter than a socket's buffer, so they are written at once or not at all:
  // TLS has to shake hands first.
  const auto send = [&](const Message& m) {
    const std::string bytes = wire::encode(m);
    const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    return guest.channel->write({&part, 1}) == bytes.size();
  };
  guest.greeted = guest.greeted || send(guest.challenge.message());
  if (!guest.greeted) return false;
  char bytes[wire::kMaxBytesBeforeProof];
  const iovec part{bytes, sizeof bytes};
  const size_t n = guest.channel->read({&part, 1});
  // How every conversation in TLS begins.
  check_file(identity_.tls != nullptr || n < 2 || bytes[0] != '\x16' || bytes[1] != '\x03',
             "it uses TLS and this process does not", kCompareTls);
  guest.reader.feed({bytes, n});
  const auto proof = guest.reader.next();
  if (!proof) return false;
  const auto from = static_cast<int>(proof->number);
  check_file(proof->number >= 0 && proof->number < size_ && from != rank_ && proof->count == rank_,
             "not a connection from another rank to rank ", rank_);
  const Message welcome = guest.challenge.check(*proof, identity_.secret,
                                                identity_.context(from, rank_, *guest.channel));
  epoll_ctl(epoll_, EPOLL_CTL_DEL, guest.channel->fd(), nullptr);
  check_file(send(welcome), "the connection is blocked");
  on_rank_(from, std::move(guest.channel));
  return true;
}

void TcpAcceptor::refuse(uint64_t id, const std::string& why) {
  // Anyone can connect: limit what such clients add to the log.
  if (++refused_ <= kMaxLoggedRefusals)
    log::warning("comm", identity_.self.empty() ? str("rank ", rank_) : identity_.self,
                 " refused a connection: ", why);
  guests_.erase(id);
}

Deadline TcpAcceptor::drop_late() {
  Deadline next = after(Milliseconds(60'000));
  for (auto it = guests_.begin(); it != guests_.end();) {
    next = std::min(next, it->second.deadline);
    it = it->second.deadline <= Clock::now() ? guests_.erase(it) : std::next(it);
  }
  return next;
}

std::unique_ptr<Channel> connect_to_rank(const Endpoint& endpoint, const TcpIdentity& identity,
                                         int from, int to, Deadline deadline,
                                         const std::function<void()>& check) {
  return prove_to_rank(connect_once(endpoint, deadline, check), to_string(endpoint), identity, from,
                       to, deadline, check);
}

std::unique_ptr<Channel> prove_to_rank(Fd socket, const std::string& name,
                                       const TcpIdentity& identity, int from, int to,
                                       Deadline deadline, const std::function<void()>& check) {
  auto channel = Channel::over(std::move(socket), identity.tls.get(), false);
  wire::Reader reader;
  bool proved = false, heard = false;
  try {
    const auto context = [&] { return identity.context(from, to, *channel); };
    authenticate(
        {.number = from, .count = to}, identity.secret, context,
        [&](const Message& m) {
          write_all(*channel, wire::encode(m), deadline, check);
          proved = true;
        },
        [&] {
          for (std::string bytes;;) {
            if (auto message = reader.next()) return *message;
            // No more than the message: what follows it is the caller's.
            read_some(*channel, bytes, std::max<size_t>(reader.missing(), 1), deadline, check);
            reader.feed(bytes);
            heard = true;
          }
        });
  } catch (const OtherCertificates&) {
    throw;
  } catch (const ConnectionLost& e) {
    if (!proved) throw;
    throw NotTrusted(
        str("refused the connection at ", name, " (is the job's secret the same?): ", e.what()));
  } catch (const Error& e) {
    // Each side waits for the other to begin where only one has certificates.
    if (heard || identity.tls != nullptr || e.kind() != Error::Kind::kTimeout) throw;
    fail(e.kind(), str(e.what(), "; if it uses TLS this process must, too", kCompareTls));
  }
  return channel;
}

}  // namespace fleetx::comm
