#include "fleetx/ps/server_link.h"

#include <sys/epoll.h>

#include <algorithm>

#include "fleetx/base/interrupt.h"
#include "fleetx/base/log.h"
#include "fleetx/ps/identity.h"
#include "fleetx/ps/local_socket.h"

namespace fleetx::ps {

using comm::Clock;
using comm::Milliseconds;
using wire::Header;
using wire::Kind;

namespace {

constexpr Milliseconds kPingPeriod{1000}, kTryPeriod{100}, kTryTimeout{1000};
constexpr size_t kMaxParts = 512, kTurnBytes = size_t{1} << 20;
constexpr size_t kLargeBytes = size_t{1} << 16;
// Of server_start_: the next one that answers is another process. (Random numbers are larger.)
constexpr uint64_t kAnyServer = 1;

size_t bytes_of(const std::vector<iovec>& parts) {
  size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

std::span<const iovec> rest_of(const std::vector<iovec>& parts, size_t first) {
  return std::span(parts).subspan(first, std::min(kMaxParts, parts.size() - first));
}

void advance(std::vector<iovec>& parts, size_t& first, size_t bytes) {
  while (first < parts.size() && bytes >= parts[first].iov_len) bytes -= parts[first++].iov_len;
  if (bytes == 0) return;
  parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + bytes;
  parts[first].iov_len -= bytes;
}

}  // namespace

Error copy(const Error& error) { return Error(error.kind(), std::string(error.what())); }

void Ticket::State::answer(const Error* error_of_server) {
  std::function<void()> done;
  {
    const std::scoped_lock lock(mutex);
    if (error_of_server != nullptr && !error) error = copy(*error_of_server);
    if (--left > 0) return;
    done = std::move(on_done);
    if (error && on_error) on_error(*error);
    changed.notify_all();
  }
  if (done) done();
}

ServerLink::ServerLink(LinkOptions options, int epoll)
    : options_(std::move(options)),
      epoll_(epoll),
      at_(options_.endpoint),
      next_sequence_(options_.first_sequence) {}

std::string ServerLink::name() const {
  return str("parameter server ", options_.server, " at ", to_string(at_));
}

// --- connecting ----------------------------------------------------------------------------------

wire::Welcome ServerLink::connect(comm::Deadline deadline) {
  Fd socket = connect_locally(at_);
  is_local_ = static_cast<bool>(socket);
  if (!socket) socket = comm::connect_once(at_, deadline, [] { check_interrupt(); });
  auto channel = comm::prove_to_rank(std::move(socket), to_string(at_), options_.identity,
                                     kFirstWorkerRank + options_.worker, kServerRank, deadline,
                                     [] { check_interrupt(); });
  wire::Hello greeting = options_.hello;
  {
    const std::scoped_lock lock(mutex_);
    greeting.confirmed = confirmed_;
    greeting.barrier = barrier_;
    greeting.pushes = confirmed_pushes_;
    greeting.takes_over = takes_over_ ? 1 : 0;
  }
  const std::string hello = encode(greeting);
  const Header header{.kind = Kind::kHello, .bytes = hello.size()};
  const wire::HeaderBytes bytes = wire::encode(header);
  comm::write_all(*channel, std::string(bytes.data(), bytes.size()) + hello, deadline,
                  [] { check_interrupt(); });
  const auto receive = [&](size_t n) {
    std::string all, part;
    while (all.size() < n) {
      comm::read_some(*channel, part, n - all.size(), deadline, [] { check_interrupt(); });
      all += part;
    }
    return all;
  };
  const std::string reply_bytes = receive(wire::kHeaderBytes);
  const Header reply = wire::decode(std::span<const char, wire::kHeaderBytes>(reply_bytes));
  check_file(reply.bytes <= wire::kMaxTextBytes, name(), ": a welcome of ", reply.bytes, " bytes");
  const std::string text = receive(reply.bytes);
  if (reply.kind == Kind::kRefused && text == kIsStandby) throw comm::ConnectionLost(text);
  if (reply.kind == Kind::kRefused) fail(Error::Kind::kInvalidArgument, str(name(), ": ", text));
  const wire::Welcome welcome = wire::decode_welcome(text);
  const std::scoped_lock lock(mutex_);
  check_server(welcome);
  // What was sent and not answered goes first, in its old order.
  for (auto it = sent_.rbegin(); it != sent_.rend(); ++it)
    if (it->second->ticket) unsent_.push_front(it->second);  // a ping is not worth it
  sent_.clear();
  writing_.reset();
  reading_.reset();
  have_header_ = 0;
  heard_ = sent_at_ = Clock::now();
  named_ = false;
  channel_ = std::move(channel);
  watched_out_ = false;
  writes_ = true;
  watch(EPOLL_CTL_ADD, EPOLLIN);
  write();
  return welcome;
}

// Whether it is the server that this worker knows, or one that goes on in its place. With the lock.
void ServerLink::check_server(const wire::Welcome& welcome) {
  if (server_start_ > kAnyServer && server_start_ != welcome.start) {
    check_arg(welcome.restored != 0, name(),
              " was started again without a snapshot: what it had learned is lost");
    log::warning("ps", name(), " was started again and goes on from its snapshot; its log says ",
                 "which pushes are lost");
  }
  if (server_start_ == 0) confirmed_pushes_ = welcome.pushes;
  server_start_ = welcome.start;
  takes_over_ = false;
  copy_.reset();
  if (!welcome.copy.empty()) copy_ = comm::parse_endpoint(welcome.copy);
  has_copies_ = has_copies_ || copy_;
}

// The copy has all that the server has confirmed, and knows how far this worker is. With the lock.
bool ServerLink::go_to_copy(const std::string& why) {
  if (!copy_) return false;
  log::warning("ps", "worker ", options_.worker, ": ", name(), " ", why, "; its copy at ",
               to_string(*copy_), " takes its place");
  at_ = *copy_;
  copy_.reset();
  server_start_ = kAnyServer;
  takes_over_ = true;
  heard_ = next_try_ = Clock::now();
  named_ = false;
  return true;
}

void ServerLink::go_to(const comm::Endpoint& copy) {
  log::warning("ps", "worker ", options_.worker, ": ", name(), " is gone; its copy at ",
               to_string(copy), " is in its place");
  const std::scoped_lock lock(mutex_);
  at_ = copy;
}

void ServerLink::lose(const std::string& why) {
  if (!channel_) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, channel_->fd(), nullptr);
  channel_.reset();
  broken_ = why;
  next_try_ = Clock::now();
  log::debug("ps", name(), ": ", why, "; connecting again");
}

void ServerLink::watch(int action, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = options_.id;
  epoll_ctl(epoll_, action, channel_->fd(), &event);
}

// --- sending -------------------------------------------------------------------------------------

void ServerLink::submit(LinkRequestPtr request) {
  std::optional<Error> failed;
  {
    const std::scoped_lock lock(mutex_);
    failed = failed_;
    if (!failed) {
      request->header.request = next_request_++;
      if (is_push(request->header.kind)) request->header.sequence = next_sequence_++;
      if (request->header.kind == Kind::kBarrier)
        barrier_ = std::max(barrier_, request->header.count);
      request->header.bytes = bytes_of(request->send);
      unsent_.push_back(request);
      if (channel_ && !watched_out_) write_soon(request->header.bytes);
    }
  }
  if (failed && request->ticket) request->ticket->answer(&*failed);
}

void ServerLink::put_ids(LinkRequest& request, std::span<const uint64_t> ids,
                         std::shared_ptr<const void> owner) const {
  auto deltas = std::make_shared<std::string>();
  if (!is_local_) *deltas = wire::encode_deltas(ids);
  if (deltas->empty()) {
    request.send.push_back({const_cast<uint64_t*>(ids.data()), ids.size_bytes()});
    request.keeps[0] = std::move(owner);
    return;
  }
  request.header.flags |= wire::kDeltas;
  request.send.push_back({deltas->data(), deltas->size()});
  request.keeps[0] = std::move(deltas);
}

// What is large is written by the client's thread: who has trained a step goes on with the next one
// while the system copies its gradients. With the lock.
void ServerLink::write_soon(size_t bytes) {
  if (bytes < kLargeBytes || !writes_) return write();
  watch(EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  watched_out_ = true;
}

// With the lock.
void ServerLink::write() {
  if (!writes_) return;
  try {
    for (;;) {
      if (!writing_) {
        if (unsent_.empty()) break;
        writing_ = std::move(unsent_.front());
        unsent_.pop_front();
        sent_[writing_->header.request] = writing_;
        out_header_ = wire::encode(writing_->header);
        out_.assign(1, iovec{out_header_.data(), out_header_.size()});
        out_.insert(out_.end(), writing_->send.begin(), writing_->send.end());
        out_part_ = 0;
      }
      const size_t n = channel_->write(rest_of(out_, out_part_));
      if (n == 0) break;
      sent_at_ = Clock::now();
      advance(out_, out_part_, n);
      if (out_part_ == out_.size()) writing_.reset();
    }
    const bool blocked = writing_ != nullptr;
    if (blocked != watched_out_) watch(EPOLL_CTL_MOD, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
    watched_out_ = blocked;
  } catch (const comm::ConnectionLost&) {
    // There may be replies that it sent before it closed: reading finds them, and then the end.
    writes_ = false;
  }
}

// --- receiving -----------------------------------------------------------------------------------

bool ServerLink::on_event(uint32_t events) {
  Lock lock(mutex_);
  if (!channel_) return false;
  if ((events & EPOLLOUT) != 0) write();
  if (channel_ && (events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) read(lock);
  if (!lock.owns_lock()) lock.lock();
  return channel_ != nullptr;
}

void ServerLink::read(Lock& lock) {
  try {
    for (size_t turn = 0; turn < kTurnBytes || (channel_ && channel_->has_decrypted());
         turn += kTurnBytes / 64)
      if (!read_some()) break;
  } catch (const comm::ConnectionLost& e) {
    lose(e.what());
  } catch (const Error& e) {
    lose(e.what());  // what it sends makes no sense
  }
  const auto answered = std::exchange(answered_, {});
  const auto refused = std::exchange(refused_, {});
  lock.unlock();
  for (const auto& request : answered) request->ticket->answer(nullptr);
  for (const auto& [request, error] : refused) request->ticket->answer(&error);
}

// False: there is no more at the moment.
bool ServerLink::read_some() {
  if (have_header_ < wire::kHeaderBytes) {
    const iovec part{in_header_.data() + have_header_, wire::kHeaderBytes - have_header_};
    const size_t n = channel_->read({&part, 1});
    if (n == 0) return false;
    heard_ = Clock::now();
    have_header_ += n;
    if (have_header_ < wire::kHeaderBytes) return true;
    header_ = wire::decode(in_header_);
    begin_reply();
  } else {
    const size_t n = channel_->read(rest_of(in_, in_part_));
    if (n == 0) return false;
    heard_ = Clock::now();
    advance(in_, in_part_, n);
  }
  if (in_part_ == in_.size()) end_reply();
  return true;
}

void ServerLink::begin_reply() {
  check_file(header_.kind == Kind::kReply || header_.kind == Kind::kRefused, name(), " sends ",
             to_string(header_.kind), " to a worker");
  const auto it = sent_.find(header_.request);
  reading_ = it == sent_.end() ? nullptr : it->second;  // none: it was given up
  in_part_ = 0;
  if (header_.kind == Kind::kReply && reading_ && !reading_->into.empty()) {
    in_ = reading_->into;
    check_file(bytes_of(in_) == header_.bytes, name(), " answers ",
               to_string(reading_->header.kind), " by ", header_.bytes, " bytes where ",
               bytes_of(in_), " are expected");
    return;
  }
  const uint64_t most = reading_ ? wire::kMaxTextBytes : uint64_t{1} << 34;
  check_file(header_.bytes <= most, name(), ": a text of ", header_.bytes, " bytes");
  text_.resize(header_.bytes);
  in_.clear();
  if (header_.bytes > 0) in_.push_back({text_.data(), text_.size()});
}

void ServerLink::end_reply() {
  have_header_ = 0;
  const LinkRequestPtr request = std::exchange(reading_, nullptr);
  if (!request) return;
  sent_.erase(request->header.request);
  if ((header_.flags & wire::kAlone) != 0) {
    copy_.reset();
    has_copies_ = true;
  }
  if ((header_.flags & wire::kNewCopy) != 0) {
    copy_ = comm::parse_endpoint(std::string(text_.text()));
    log::info("ps", name(), " has a copy again, at ", to_string(*copy_));
  }
  if (!request->ticket) return;
  if (header_.kind == Kind::kRefused) {
    const auto kind = header_.count <= static_cast<uint64_t>(Error::Kind::kInternal)
                          ? static_cast<Error::Kind>(header_.count)
                          : Error::Kind::kComm;
    refused_.emplace_back(request, Error(kind, str(name(), ": ", text_.text())));
    return;
  }
  if (request->into.empty()) {
    const std::scoped_lock lock(request->ticket->mutex);
    const auto server = static_cast<size_t>(options_.server);
    if (server < request->ticket->counts.size()) {
      request->ticket->counts[server] = header_.count;
      request->ticket->texts[server] = text_.text();
    }
  }
  if (is_push(request->header.kind)) confirm(request->header);
  answered_.push_back(request);
}

void ServerLink::confirm(const Header& push) {
  confirmed_ = std::max(confirmed_, push.sequence);
  if (push.kind == Kind::kPushUses) return;  // not a push of the table
  const size_t table = push.table + (push.kind == Kind::kPushDense ? 0 : options_.dense_tables);
  if (table < confirmed_pushes_.size()) ++confirmed_pushes_[table];
}

// --- staying alive -------------------------------------------------------------------------------

void ServerLink::tick() {
  expire();
  const auto now = Clock::now();
  bool connects = false;
  std::string why;
  {
    const std::scoped_lock lock(mutex_);
    if (failed_ || server_start_ == 0) return;  // 0: it is being connected to for the first time
    if (channel_ && now - heard_ > options_.silence) {
      lose("does not answer");
      if (!go_to_copy(broken_)) name_if_silent(broken_);  // before trying again takes its time
    }
    if (channel_ && now - sent_at_ > kPingPeriod && !watched_out_) {
      auto ping = std::make_shared<LinkRequest>();
      ping->header.kind = Kind::kPing;
      ping->header.request = next_request_++;
      unsent_.push_back(std::move(ping));
      write();
    }
    connects = !channel_ && now >= next_try_ && !(leaving_ && unsent_.empty() && sent_.empty());
    why = broken_;
  }
  if (!connects) return;
  try {
    connect(comm::after(kTryTimeout));
    log::info("ps", name(), ": connected again after: ", why);
    return;
  } catch (const Error& e) {
    // Another job, or a server that was started anew: trying again does not help, but a timeout
    // may.
    if (e.kind() == Error::Kind::kInvalidArgument) return close(e);
    why = e.kind() == Error::Kind::kTimeout ? str("does not answer (", e.what(), ")") : e.what();
  } catch (const comm::ConnectionLost& e) {
    why = e.what();
  }
  // Refused: the process is gone. Or it is another one, which was started in its place.
  const bool is_gone = why.find("Connection refused") != std::string::npos || why == kIsStandby;
  if (is_gone) look_for_copy();
  {
    const std::scoped_lock lock(mutex_);
    next_try_ = Clock::now() + kTryPeriod;
    if (is_gone && go_to_copy(why)) return;
    name_if_silent(why);
  }
  if (Clock::now() - heard_ > options_.reconnect_timeout)
    close(Error(Error::Kind::kComm, str(name(), " cannot be reached for ",
                                        comm::seconds_since(heard_), " s: it ", why)));
}

// The server may have got another copy, and died before it could tell this worker.
void ServerLink::look_for_copy() {
  {
    const std::scoped_lock lock(mutex_);
    if (copy_ || !has_copies_ || !options_.find_copy) return;
  }
  const std::optional<comm::Endpoint> found = options_.find_copy(options_.server);
  const std::scoped_lock lock(mutex_);
  if (found && to_string(*found) != to_string(at_)) copy_ = found;
}

// With the lock.
void ServerLink::name_if_silent(const std::string& why) {
  if (named_ || Clock::now() - heard_ < options_.silence) return;
  named_ = true;
  log::warning("ps", "worker ", options_.worker, " has heard nothing of ", name(), " for ",
               comm::seconds_since(heard_), " s (it ", why, "); trying for ",
               std::chrono::duration<double>(options_.reconnect_timeout).count(), " s");
}

void ServerLink::expire() {
  std::vector<LinkRequestPtr> late;
  const auto now = Clock::now();
  {
    const std::scoped_lock lock(mutex_);
    const auto is_late = [&](const LinkRequestPtr& r) { return r->ticket && r->deadline <= now; };
    std::erase_if(unsent_, [&](const LinkRequestPtr& r) {
      if (is_late(r)) late.push_back(r);
      return is_late(r);
    });
    for (auto it = sent_.begin(); it != sent_.end();) {
      if (!is_late(it->second)) {
        ++it;
        continue;
      }
      // Its memory is the caller's again: nothing may be read into it or sent from it.
      if (it->second == reading_ || it->second == writing_) lose("did not answer in time");
      late.push_back(it->second);
      it = sent_.erase(it);
    }
  }
  for (const LinkRequestPtr& r : late) {
    const Error error(Error::Kind::kTimeout,
                      str(name(), " has not answered ", to_string(r->header.kind), " of table ",
                          r->header.table, " in time"));
    r->ticket->answer(&error);
  }
}

void ServerLink::close(const Error& why) {
  std::vector<LinkRequestPtr> all;
  {
    const std::scoped_lock lock(mutex_);
    if (failed_) return;
    failed_ = why;
    lose(why.what());
    for (const auto& [id, request] : sent_) all.push_back(request);
    for (const LinkRequestPtr& request : unsent_) all.push_back(request);
    sent_.clear();
    unsent_.clear();
    writing_.reset();
    reading_.reset();
  }
  for (const LinkRequestPtr& request : all)
    // A server that ended has heard all goodbyes.
    if (request->ticket)
      request->ticket->answer(request->header.kind == Kind::kGoodbye ? nullptr : &why);
}

void ServerLink::leave() {
  const std::scoped_lock lock(mutex_);
  leaving_ = true;
}

}  // namespace fleetx::ps
