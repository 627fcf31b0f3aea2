// A server and its copy (replica.h), and the copy that it keeps of another.
#include "fleetx/base/log.h"
#include "fleetx/ps/server_impl.h"

namespace fleetx::ps {

using wire::Header;

namespace {

// Of a copy that is not needed any more: its workers leave at the same time.
constexpr auto kLastGoodbyes = std::chrono::seconds(5);

}  // namespace

void Server::Impl::meet_copy(const ServerConnection& connection, const wire::Hello& hello) {
  if (options_.is_copy && hello.forwarded == 0) take_place();
  check_arg(hello.forwarded == 0 || !took_place_, kTookPlace);
  if (!replica_) return;
  // Workers try again.
  if (replica_->state() == Replica::State::kSeeking)
    throw comm::ConnectionLost("is not ready: its copy is not there yet");
  replica_->greet(connection.worker(), hello.start);
}

// A worker has come to the copy: from now on it is the server.
void Server::Impl::take_place() {
  if (took_place_.exchange(true)) return;
  log::warning("ps", "the copy of server ", options_.index, " at ", endpoint(),
               " takes its place: workers cannot reach it");
  const std::scoped_lock lock(members_mutex_);
  for (const auto& session : sessions_)
    if (session->connection && session->connection->forwarded) session->connection->close();
}

// A server whose copy has taken its place must not answer its workers any more.
void Server::Impl::check_not_deposed() {
  if (!replica_ || replica_->state() != Replica::State::kDeposed || stop_) return;
  log::warning("ps", "server ", options_.index, " ends: its copy has taken its place");
  stop();
}

void Server::Impl::confirm(const ConnectionPtr& connection, const Header& h,
                           std::string_view payload, uint64_t count, std::function<void()> then) {
  const auto done = [connection, h, count, then = std::move(then), replica = replica_.get()] {
    Header answer{.kind = wire::Kind::kReply, .request = h.request, .count = count};
    if (replica != nullptr && replica->state() != Replica::State::kThere)
      answer.flags = wire::kAlone;
    connection->send(answer, {});
    if (then) then();
  };
  if (!replica_) return done();
  replica_->forward(connection->worker(), h, payload, done);
}

// --- the copy of another -------------------------------------------------------------------------

void Server::Impl::run_copy() {
  try {
    copy_->run();
  } catch (const Error& e) {
    log::warning("ps", "the copy of server ", copy_index(), ": ", e.what());
  }
  copy_ended_ = true;
}

// One that has taken its server's place ends like any server, when its workers have left.
void Server::Impl::finish_copy() {
  const auto end = comm::after(kLastGoodbyes);
  while (!copy_ended_ && (copy_->took_place() || comm::Clock::now() < end))
    std::this_thread::sleep_for(comm::Milliseconds(10));
  copy_->stop();
  copy_thread_.join();
}

void Server::Impl::stop_all() {
  stop();
  if (copy_) copy_->stop();
}

}  // namespace fleetx::ps
