// The workers of a server: who has come, who is silent, who has left.
#include <algorithm>

#include "fleetx/base/log.h"
#include "fleetx/ps/server_impl.h"

namespace fleetx::ps {

using comm::Clock;
using comm::seconds_since;
using wire::Header;

namespace {

// A worker sends something every second.
constexpr std::chrono::milliseconds kLeastSilence{3'000}, kAlive{2'500};
// How often those are named that have not come while others have.
constexpr std::chrono::seconds kAbsentPeriod{20};
constexpr int kTimesToComeBack = 3;  // times the silence after which a worker is lost

}  // namespace

void Server::Impl::heard_of(const ConnectionPtr& connection) {
  {
    const std::scoped_lock lock(members_mutex_);
    Session& session = *sessions_[static_cast<size_t>(connection->worker())];
    session.heard = Clock::now();
    if (session.state != State::kLost || session.connection != connection) return;
    session.state = State::kConnected;  // it was only silent
  }
  log::info("ps", "server ", options_.index, ": worker ", connection->worker(), " is back");
  tables_.lose(connection->worker(), "");
}

void Server::Impl::on_hello(const ConnectionPtr& connection, const Header& h,
                            const Payload& payload) {
  const int worker = connection->worker();
  check_arg(worker >= 0, "hello: an observer may only look");
  const wire::Hello hello = wire::decode_hello(payload.text());
  check_arg(hello.server == static_cast<uint32_t>(options_.index), "worker ", worker, " takes ",
            endpoint(), " for server ", hello.server, ", but it is server ", options_.index,
            ": the processes of the job have different lists of servers");
  if (const std::string ours = options_.job.text(); hello.job != ours) {
    const std::string why =
        str("worker ", worker, " runs another program than server ", options_.index,
            "; the first difference:\n", first_difference(ours, hello.job));
    log::warning("ps", why, "\nIt is refused, so the others wait for it");
    fail(Error::Kind::kInvalidArgument, why);
  }
  check_part(worker, hello);
  check_number(worker, hello);
  connection->forwarded = hello.forwarded != 0;
  Session& session = *sessions_[static_cast<size_t>(worker)];
  ConnectionPtr old;
  wire::Welcome welcome;
  {
    // A push of the old connection may be under way: it is applied, then the worker is told.
    const auto changing = gate_.change();
    if (replica_) replica_->greet(worker, hello.start);
    const std::scoped_lock lock(session.pushing);
    const bool is_new = session.start != hello.start;
    check_arg(!is_new || session.start == 0 || hello.confirmed == 0 || restored_, "worker ", worker,
              " was silent, and another process with its number has taken its place");
    if (is_new) session.last = session.applied = 0;
    session.start = hello.start;
    accept_losses(worker, hello);
    welcome = {.sequence = session.last,
               .start = start_,
               .restored = restored_,
               .pushes = tables_.pushes_of(worker),
               .copy = replica_ ? replica_->endpoint() : ""};
    const std::scoped_lock told(connection->told_mutex);
    connection->told = welcome.copy;
  }
  {
    const std::scoped_lock lock(members_mutex_);
    old = std::exchange(session.connection, connection);
    if (session.state == State::kLost)
      log::info("ps", "server ", options_.index, ": worker ", worker, " is back");
    session.state = State::kConnected;
    session.left = false;
    session.heard = Clock::now();
    if (notice_absent_ == Clock::time_point::max())
      notice_absent_ = Clock::now() + options_.worker_timeout;
    session.barrier = std::max(session.barrier, hello.barrier);
  }
  tables_.lose(worker, "");
  if (old && old != connection) old->close();
  connection->greeted = true;
  Payload text;
  text.assign(encode(welcome));
  reply(*connection, h, std::move(text));
}

// Two processes with one number would take its connection from one another, and each the pushes of
// the other for its own. Who was started again is welcome as soon as its last process is gone.
void Server::Impl::check_number(int worker, const wire::Hello& hello) {
  if (hello.forwarded != 0) return;
  Session& session = *sessions_[static_cast<size_t>(worker)];
  uint64_t start = 0;
  {
    const std::scoped_lock lock(session.pushing);
    start = session.start;
  }
  if (start == hello.start) return;
  {
    const std::scoped_lock lock(members_mutex_);
    const ConnectionPtr& first = session.connection;
    if (session.state != State::kConnected || !first || first->forwarded || first->has_ended() ||
        Clock::now() - session.heard > kAlive)
      return;
  }
  const std::string why = str("worker ", worker, kHasNumber);
  log::warning("ps", "server ", options_.index, " refuses a worker: ", why);
  fail(Error::Kind::kInvalidArgument, why);
}

// A server that was started again knows less than it had confirmed before. The worker goes on
// counting from there; what the snapshot does not have is lost. With the session's lock.
void Server::Impl::accept_losses(int worker, const wire::Hello& hello) {
  Session& session = *sessions_[static_cast<size_t>(worker)];
  if (hello.confirmed <= session.last) return;
  check_arg(restored_, "server ", options_.index,
            " was started again without a snapshot: what it had learned is lost (", hello.confirmed,
            " pushes of worker ", worker, ")");
  log::warning("ps", "server ", options_.index, ": of the pushes of worker ", worker, ", ",
               hello.confirmed - session.last,
               " are lost since the snapshot: ", tables_.confirm(worker, hello.pushes));
  session.last = session.applied = hello.confirmed;
}

void Server::Impl::on_barrier(const ConnectionPtr& connection, const Header& h) {
  {
    const std::scoped_lock lock(members_mutex_);
    Session& session = *sessions_[static_cast<size_t>(connection->worker())];
    session.barrier = std::max(session.barrier, h.count);
    barriers_.push_back({connection, h, connection->worker()});
  }
  answer_barriers();
}

void Server::Impl::answer_barriers() {
  std::vector<Request> passed, refused;
  std::string why;
  {
    const std::scoped_lock lock(members_mutex_);
    uint64_t all = UINT64_MAX;
    for (size_t w = 0; w < sessions_.size(); ++w) {
      const Session& session = *sessions_[w];
      if (session.state == State::kGone) continue;
      if (session.state == State::kLost) {
        why = str("worker ", w, " is lost, so it will not come to the barrier");
        if (options_.job.mode == Mode::kAsync) continue;
      }
      all = std::min(all, session.barrier);
    }
    std::erase_if(barriers_, [&](const Request& r) {
      const bool ready = r.header.count <= all;
      const bool fails = !ready && !why.empty() && options_.job.mode == Mode::kSync;
      if (ready) passed.push_back(r);
      if (fails) refused.push_back(r);
      return ready || fails;
    });
  }
  for (const Request& r : passed) reply(*r.peer, r.header);
  for (const Request& r : refused) refuse(*r.peer, r.header, Error::Kind::kComm, why);
}

void Server::Impl::on_goodbye(const ConnectionPtr& connection, const Header& h) {
  const auto changing = gate_.change();
  Session& session = *sessions_[static_cast<size_t>(connection->worker())];
  {
    const std::scoped_lock lock(members_mutex_);
    session.state = State::kGone;
  }
  tables_.leave(connection->worker());
  answer_barriers();
  confirm(connection, h, {}, 0, [this, &session] {
    bool all = true;
    {
      const std::scoped_lock lock(members_mutex_);
      session.left = true;
      for (const auto& s : sessions_) all = all && s->state == State::kGone && s->left;
    }
    if (all) stop();
  });
}

void Server::Impl::lose(int worker, const std::string& why) {
  log::warning("ps", "server ", options_.index, ": ", why);
  tables_.lose(worker, why);
  answer_barriers();
}

// Why a worker is lost from now on; "": it is not. With the lock of members.
std::string Server::Impl::why_lost(size_t worker, const Session& session) const {
  const auto now = Clock::now();
  // A copy hears of workers through their server; when that is lost they need a moment to come.
  const int patience = began_as_standby() ? kTimesToComeBack : 1;
  if (session.state == State::kConnected &&
      now - session.heard > patience * std::max(options_.worker_timeout, kLeastSilence) &&
      !session.connection->has_unread())
    return str("worker ", worker, " is lost: nothing was heard of it for ",
               seconds_since(session.heard), " s");
  if (session.state == State::kDisconnected &&
      now - session.disconnected > patience * options_.worker_timeout)
    return str("worker ", worker, " is lost: its connection ended ",
               seconds_since(session.disconnected), " s ago");
  return "";
}

void Server::Impl::look_for_lost() {
  std::vector<std::pair<int, std::string>> lost;
  const auto now = Clock::now();
  {
    const std::scoped_lock lock(members_mutex_);
    int alive = 0, orphans = 0;
    for (size_t w = 0; w < sessions_.size(); ++w) {
      Session& session = *sessions_[w];
      if (const std::string why = why_lost(w, session); !why.empty()) {
        session.state = State::kLost;
        lost.emplace_back(w, why);
      }
      orphans += session.state == State::kLost ? 1 : 0;
      alive += session.state != State::kLost && session.state != State::kGone ? 1 : 0;
    }
    if (alive > 0 || orphans == 0) {
      orphaned_ = {};
    } else if (orphaned_ == Clock::time_point{}) {
      orphaned_ = now;
    } else if (now - orphaned_ > options_.orphan_timeout) {
      fatal_ = str("server ", options_.index, " has no workers left: ", orphans,
                   " are lost, the others have left");
      stop_ = true;
    }
  }
  for (const auto& [worker, why] : lost) lose(worker, why);
  if (!fatal_.empty()) stop_all();
}

// Those that have not come (back). A server that goes on from a snapshot does not know who has left
// since; all that are alive connect again within moments.
void Server::Impl::look_for_absent() {
  std::vector<int> absent;
  const auto now = Clock::now();
  const bool had_time =
      restored_ && now - serving_since_ > kTimesToComeBack * options_.worker_timeout;
  bool all_gone = true;
  if (began_as_standby()) return;
  {
    const std::scoped_lock lock(members_mutex_);
    if (!had_time && notice_absent_ > now) return;
    notice_absent_ = now + kAbsentPeriod;
    for (size_t w = 0; w < sessions_.size(); ++w) {
      Session& session = *sessions_[w];
      if (session.state == State::kNeverSeen) absent.push_back(static_cast<int>(w));
      if (session.state == State::kNeverSeen && had_time) {
        session.state = State::kGone;
        session.left = true;
      }
      all_gone = all_gone && session.state == State::kGone;
    }
  }
  for (const int worker : absent) {
    log::warning("ps", "server ", options_.index,
                 had_time ? " does without worker " : " waits for worker ", worker,
                 had_time ? ", which has not come back" : ", which has not come yet");
    if (had_time) tables_.leave(worker);
  }
  if (absent.empty() || !had_time) return;
  answer_barriers();
  if (all_gone) stop();
}

}  // namespace fleetx::ps
