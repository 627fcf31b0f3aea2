// A server and its copy (replica.h): who is active, the state that one gives the other, and the
// copy that it keeps of another server.
#include "fleetx/base/log.h"
#include "fleetx/ps/server_impl.h"

namespace fleetx::ps {

using wire::Header;
using wire::Part;

namespace {

// Of a copy that is not needed any more: its workers leave at the same time.
constexpr auto kLastGoodbyes = std::chrono::seconds(5);

}  // namespace

// Who may say hello to it: workers to the active one of the two, and that one to the other.
void Server::Impl::check_part(int worker, const wire::Hello& hello) {
  if (hello.forwarded != 0) {
    check_arg(part_ != Part::kActive, kTookPlace);
    check_arg(part_ != Part::kBlank, name(), " has not been given any state");
    return;
  }
  if (part_ == Part::kStandby && hello.takes_over != 0) {
    check_has_all(worker, hello);
    take_place();
  }
  check_arg(part_ == Part::kActive, kIsStandby);
  // Workers try again.
  if (replica_ && replica_->state() == Replica::State::kSeeking)
    throw comm::ConnectionLost("is not ready: its copy is not there yet");
}

// A server that went on without its copy, and died, has confirmed more than the copy has.
void Server::Impl::check_has_all(int worker, const wire::Hello& hello) {
  Session& session = *sessions_[static_cast<size_t>(worker)];
  const std::scoped_lock lock(session.pushing);
  const uint64_t last = session.start == hello.start ? session.last : 0;
  check_arg(hello.confirmed <= last, name(), " cannot take its place: server ", options_.index,
            " went on without it, and ", hello.confirmed - std::min(hello.confirmed, last),
            " pushes that it has confirmed to worker ", worker, " are lost");
}

// A worker has come to the standby: from now on it is the server.
void Server::Impl::take_place() {
  Part standby = Part::kStandby;
  if (!part_.compare_exchange_strong(standby, Part::kActive)) return;
  log::warning("ps", name(), " at ", endpoint(), " takes its place: workers cannot reach ",
               options_.is_copy ? "it" : "the copy that was active");
  if (replica_) replica_->wake();
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

// With what the worker has to know of the copy.
void Server::Impl::answer(const ConnectionPtr& connection, const Header& h, uint64_t count) {
  Header header{.kind = wire::Kind::kReply, .request = h.request, .count = count};
  Payload text;
  if (replica_ && connection->greeted && !connection->forwarded) {
    const std::string copy = replica_->endpoint();
    const std::scoped_lock lock(connection->told_mutex);
    if (copy.empty()) {
      header.flags = wire::kAlone;
    } else if (connection->told != copy) {
      header.flags = wire::kNewCopy;
      text.assign(copy);
      header.bytes = text.size();
    }
    connection->told = copy;
  }
  connection->send(header, std::move(text));
}

void Server::Impl::confirm(const ConnectionPtr& connection, const Header& h,
                           std::string_view payload, uint64_t count, std::function<void()> then) {
  auto done = [this, connection, h, count, then = std::move(then)] {
    answer(connection, h, count);
    if (then) then();
  };
  if (!replica_) return done();
  replica_->forward(connection->worker(), h, payload, std::move(done));
}

// --- state that is given to a copy ---------------------------------------------------------------

void Server::Impl::make_replica() {
  const std::string& disk = options_.memory.disk;
  replica_ = std::make_unique<Replica>(ReplicaOptions{
      .identity = identity_,
      .partner = options_.copied_by,
      .question = options_.is_copy ? wire::Kind::kStandby : wire::Kind::kCopy,
      .server = options_.index,
      .job = options_.job,
      .dormant = began_as_standby(),
      .stand_still = [this](const std::function<void()>& look) { gate_.stand_still(look); },
      .save_state = [this](const std::string& path) { return save_state(path); },
      .disk = disk.empty() ? "" : str(disk, "/server.", options_.index, ".state")});
}

// While nothing changes.
std::vector<WorkerProgress> Server::Impl::save_state(const std::string& path) {
  ServerState state{.last_shrink = last_shrink_};
  std::vector<WorkerProgress> present;
  const std::scoped_lock lock(members_mutex_);
  for (const auto& session : sessions_) {
    const bool gone = session->state == State::kGone;
    state.workers.push_back({session->start, session->last});
    state.gone.push_back(gone);
    present.push_back(gone ? WorkerProgress{} : state.workers.back());
  }
  write_state(path, tables_, state);
  return present;
}

void Server::Impl::on_state(const ConnectionPtr& connection, const Header& h,
                            const Payload& payload) {
  {
    const std::scoped_lock lock(state_mutex_);
    asked_ = comm::Clock::now();
    if (h.kind == wire::Kind::kState) {
      if (h.count == 0) {
        const std::string& disk = options_.memory.disk;
        state_ = std::make_unique<StateFile>(
            disk.empty() ? "" : str(disk, "/server.", options_.index, ".given"));
      }
      check_arg(state_ != nullptr && state_->size() == h.count, to_string(h.kind), ": ", h.count,
                " bytes were sent, which are not here");
      state_->append(payload.text());
    }
    if (h.kind == wire::Kind::kFollow) follow();
    if (h.kind == wire::Kind::kForget) forget();
  }
  if (h.kind == wire::Kind::kComplete) {
    Part following = Part::kFollowing;
    check_arg(part_.compare_exchange_strong(following, Part::kStandby), name(),
              " has not been given any state");
    log::info("ps", name(), " at ", endpoint(), " has all that was learned");
    complete();
  }
  Payload text;
  if (h.kind == wire::Kind::kStandby) text.assign(endpoint());
  reply(*connection, h, std::move(text), static_cast<uint64_t>(part()));
}

// With the lock of the state.
void Server::Impl::follow() {
  check_arg(part_ == Part::kBlank && state_ != nullptr, name(), " does not wait for a state");
  part_ = Part::kFollowing;
  const ServerState state = load_state(tables_, state_->path(), options_.index);
  state_.reset();
  last_shrink_ = state.last_shrink;
  const std::scoped_lock lock(members_mutex_);
  for (size_t w = 0; w < sessions_.size(); ++w) {
    Session& session = *sessions_[w];
    session.start = state.workers[w].start;
    session.applied = session.last = state.workers[w].last;
    session.left = state.gone[w];
    if (session.start == 0 && !state.gone[w]) continue;
    session.state = state.gone[w] ? State::kGone : State::kDisconnected;
    session.disconnected = comm::Clock::now();
  }
}

// The server has gone on without this copy, which it could not reach: what it has is out of date.
// With the lock of the state.
void Server::Impl::forget() {
  {
    const std::scoped_lock lock(members_mutex_);
    for (const auto& session : sessions_)
      check_arg(!session->connection, name(), " is in use: its server passes changes on to it");
  }
  Part standby = Part::kStandby;
  check_arg(part_.compare_exchange_strong(standby, Part::kBlank), name(),
            " has taken its place, or waits for a state already");
  log::warning("ps", name(), " at ", endpoint(), " has missed changes, and is made again");
  gate_.stand_still([&] {
    tables_.clear();
    const std::scoped_lock lock(members_mutex_);
    for (const auto& session : sessions_) {
      session->start = session->last = session->applied = session->barrier = 0;
      session->state = State::kNeverSeen;
      session->left = false;
    }
  });
}

// It, or the copy that it keeps.
void Server::Impl::complete() {
  if (options_.blank && !options_.is_copy && --incomplete_ > 0) return;
  if (options_.on_complete) options_.on_complete();
}

// Nobody may know that it waits.
void Server::Impl::look_for_state() {
  if (options_.is_copy || part_ != Part::kBlank) return;
  const std::scoped_lock lock(state_mutex_);
  if (comm::Clock::now() - asked_ < options_.orphan_timeout) return;
  fatal_ = str(name(), " was started again, and nobody has given it what was learned: the server ",
               "that keeps its copy is gone, or has ended");
  stop_all();
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
  while (!copy_ended_ && (copy_->part() == Part::kActive || comm::Clock::now() < end))
    std::this_thread::sleep_for(comm::Milliseconds(10));
  copy_->stop();
  copy_thread_.join();
}

void Server::Impl::stop_all() {
  stop();
  if (copy_) copy_->stop();
}

}  // namespace fleetx::ps
