// What takes a server long: save, load, shrink, its own snapshots. And its statistics.
#include "fleetx/base/log.h"
#include "fleetx/ps/server_impl.h"
#include "fleetx/ps/snapshot.h"

namespace fleetx::ps {

using comm::Clock;
using comm::seconds_since;
using wire::Header;
using wire::Kind;

namespace {

SaveOptions save_options_of(const Header& h) {
  using Mode = SaveOptions::Mode;
  return {.mode = (h.flags & wire::kBase) != 0    ? Mode::kBase
                  : (h.flags & wire::kDelta) != 0 ? Mode::kDelta
                                                  : Mode::kAll,
          .text = (h.flags & wire::kText) != 0};
}

}  // namespace

// --- commands that take long ---------------------------------------------------------------------

void Server::Impl::on_slow(const ConnectionPtr& connection, const Header& h,
                           const Payload& payload) {
  auto command = [this, connection, h, folder = std::string(payload.text())] {
    try {
      uint64_t count = 0;
      const bool changes = h.kind == Kind::kLoad || h.kind == Kind::kShrink;
      const auto changing = changes ? gate_.change() : std::shared_lock<std::shared_mutex>();
      const SaveOptions save = save_options_of(h);
      if (h.kind == Kind::kSave) save_part(tables_, folder, h.count, options_.index, save);
      if (h.kind == Kind::kCommit)
        commit_snapshot(folder, h.count, options_.job.servers, save.mode);
      if (h.kind == Kind::kLoad) load_snapshot(tables_, folder, options_.index);
      if (h.kind == Kind::kShrink) count = shrink(h);
      // A server that comes back must have forgotten the same rows.
      if (changes) snapshot_now_ = true;
      if (changes)
        confirm(connection, h, folder, count);
      else
        reply(*connection, h, {}, count);
    } catch (const std::exception& e) {
      const auto* error = dynamic_cast<const Error*>(&e);
      refuse(*connection, h, error != nullptr ? error->kind() : Error::Kind::kUnsupported,
             str("server ", options_.index, ": ", to_string(h.kind), ": ", e.what()));
    }
  };
  const std::scoped_lock lock(slow_mutex_);
  slow_.push_back(std::move(command));
  slow_changed_.notify_all();
}

// A shrink is the end of a day, so it must not happen twice where its answer was lost.
uint64_t Server::Impl::shrink(const Header& h) {
  if (h.count != last_shrink_.first) {
    const bool given = (h.flags & wire::kByThreshold) != 0;
    const auto dropped = tables_.shrink(given ? std::optional(h.lr) : std::nullopt);
    last_shrink_ = {h.count, static_cast<uint64_t>(dropped)};
  }
  return last_shrink_.second;
}

void Server::Impl::run_slow() {
  for (;;) {
    std::function<void()> command;
    {
      std::unique_lock lock(slow_mutex_);
      slow_changed_.wait(lock, [&] { return stop_ || !slow_.empty(); });
      if (slow_.empty()) return;
      command = std::move(slow_.front());
      slow_.pop_front();
    }
    command();
  }
}

void Server::Impl::load(const std::string& folder) {
  load_snapshot(tables_, folder, options_.index);
  if (copy_) copy_->load(folder);
}

// --- snapshots of its own ------------------------------------------------------------------------

void Server::Impl::restore() {
  const Progress progress = load_own_snapshot(tables_, options_.snapshot, options_.index);
  uint64_t pushes = 0;
  for (size_t w = 0; w < sessions_.size(); ++w) {
    sessions_[w]->start = progress.workers[w].start;
    sessions_[w]->applied = sessions_[w]->last = progress.workers[w].last;
    pushes += progress.workers[w].last;
  }
  restored_ = true;
  log::warning("ps", "server ", options_.index, " goes on from ", options_.snapshot, ", which has ",
               pushes, " pushes of its workers");
}

// One at a time, in the thread of save, load and shrink.
void Server::Impl::snapshot_if_due() {
  if (options_.snapshot.empty() || options_.job.mode == Mode::kSync || saving_ ||
      (Clock::now() < next_snapshot_ && !snapshot_now_) || !tables_.has_values())
    return;
  next_snapshot_ = Clock::now() + options_.snapshot_interval;
  snapshot_now_ = false;
  saving_ = true;
  const std::scoped_lock lock(slow_mutex_);
  slow_.emplace_back([this] { save_own(); });
  slow_changed_.notify_all();
}

void Server::Impl::save_own() {
  try {
    OwnSnapshot snapshot(options_.snapshot);
    gate_.stand_still([&] {
      std::vector<WorkerProgress> workers;
      for (const auto& session : sessions_) workers.push_back({session->start, session->last});
      snapshot.write(tables_, workers);
    });
    snapshot.finish();
  } catch (const std::exception& e) {
    log::warning("ps", "server ", options_.index, ": no snapshot, the last one stays: ", e.what());
  }
  saving_ = false;
}

// --- statistics ----------------------------------------------------------------------------------

ServerStats Server::Impl::stats() const {
  constexpr std::string_view kStates[] = {"never seen", "connected", "disconnected", "lost",
                                          "gone"};
  ServerStats s{.server = options_.index,
                .servers = options_.job.servers,
                .seconds = seconds_since(begin_),
                .pulls = pulls_,
                .pushes = pushes_,
                .repeated = repeated_,
                .pulls_per_second = pull_rate_.rate(),
                .pushes_per_second = push_rate_.rate(),
                .bytes_in = bytes_in_,
                .bytes_out = bytes_out_,
                .memory_used = tables_.memory_used(),
                .memory_budget = options_.memory.bytes,
                .tables = tables_.stats(),
                .workers = {}};
  const std::scoped_lock lock(members_mutex_);
  for (size_t w = 0; w < sessions_.size(); ++w)
    s.workers.push_back({.worker = static_cast<int64_t>(w),
                         .state = std::string(kStates[static_cast<size_t>(sessions_[w]->state)]),
                         .sequence = static_cast<int64_t>(sessions_[w]->applied.load()),
                         .silent_seconds = sessions_[w]->state == State::kNeverSeen
                                               ? 0
                                               : seconds_since(sessions_[w]->heard)});
  return s;
}

}  // namespace fleetx::ps
