#include "fleetx/predict/simulate.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "fleetx/base/error.h"

namespace fleetx::predict {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Of the time that a piece of work has left: below this it is done. Sums of doubles end near zero.
constexpr double kNothing = 1e-15;

struct Call {
  size_t rank;
  const Task* task;
  double latency, host, network;  // seconds that are left
  double start = -1;
  bool done = false;
  const Call* partner = nullptr;  // the other end, which does the work

  bool flows() const { return start >= 0 && !done && partner == nullptr && latency <= 0; }
};

struct Lane {
  std::vector<size_t> calls;  // in the order in which they were made
  size_t next = 0;            // the first that has not ended
};

struct Rank {
  size_t at = 0;     // its task
  double left = -1;  // of a computation; below zero: it has not begun
  double since = 0;  // when it began
  std::map<std::string, Lane> lanes;
  std::map<int, size_t> calls;  // by their numbers
};

class Simulation {
 public:
  explicit Simulation(const std::vector<SimulatedRank>& ranks)
      : given_(ranks), ranks_(ranks.size()) {
    result_.ranks.resize(ranks.size());
  }

  Timeline run() {
    while (true) {
      while (progress()) {
      }
      if (all_done()) break;
      advance(next_event());
    }
    result_.seconds = now_;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      RankTime& t = result_.ranks[r];
      t.bubble_s = std::max(0.0, now_ - t.compute_s - t.exposed_s);
    }
    return std::move(result_);
  }

 private:
  bool all_done() const {
    for (size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].at < given_[r].tasks.size()) return false;
    return std::ranges::all_of(calls_, [](const Call& c) { return c.done; });
  }

  // Everything that can happen without time passing; false: nothing did.
  bool progress() {
    bool moved = false;
    for (size_t r = 0; r < ranks_.size(); ++r) moved |= step(r);
    for (Rank& rank : ranks_)
      for (auto& [group, lane] : rank.lanes) moved |= serve(lane);
    return moved;
  }

  bool step(size_t r) {
    Rank& rank = ranks_[r];
    if (rank.at == given_[r].tasks.size()) return false;
    const Task& task = given_[r].tasks[rank.at];
    switch (task.kind) {
      case Task::Kind::kCompute:
        if (rank.left < 0) {
          rank.left = task.seconds;
          rank.since = now_;
        }
        if (rank.left > kNothing) return false;
        if (task.seconds > 0) {
          result_.spans.push_back({r, "compute", task.name, rank.since, now_});
          result_.ranks[r].compute_s += now_ - rank.since;
        }
        rank.left = -1;
        break;
      case Task::Kind::kCall:
        rank.calls[task.call] = calls_.size();
        rank.lanes[task.group].calls.push_back(calls_.size());
        calls_.push_back({r, &task, task.latency_s, task.host_s, task.network_s});
        break;
      case Task::Kind::kWait: {
        const auto it = rank.calls.find(task.call);
        FLEETX_CHECK(it != rank.calls.end(), task.name, " waits for a call that nobody makes");
        if (!calls_[it->second].done) return false;
        break;
      }
    }
    ++rank.at;
    return true;
  }

  // Begins and ends the first call of a lane.
  bool serve(Lane& lane) {
    if (lane.next == lane.calls.size()) return false;
    Call& call = calls_[lane.calls[lane.next]];
    if (call.start < 0) {
      if (!call.task->channel.empty() && !meet(lane.calls[lane.next])) return false;
      if (call.start < 0) call.start = now_;
      return true;
    }
    const bool over = call.partner != nullptr ? call.partner->done
                                              : call.latency <= kNothing && call.host <= kNothing &&
                                                    call.network <= kNothing;
    if (!over) return false;
    call.done = true;
    result_.spans.push_back({call.rank, call.task->group, call.task->name, call.start, now_});
    ++lane.next;
    return true;
  }

  // Both ends of a message are there: the one that came first does its work.
  bool meet(size_t index) {
    Call& call = calls_[index];
    auto& waiting = waiting_[call.task->channel];
    if (std::ranges::count(waiting, index) > 0) return false;
    const auto other = std::ranges::find_if(
        waiting, [&](size_t i) { return calls_[i].rank != call.rank && calls_[i].start < 0; });
    if (other == waiting.end()) {
      waiting.push_back(index);
      return false;
    }
    calls_[*other].start = now_;
    call.partner = &calls_[*other];
    waiting.erase(other);
    return true;
  }

  // How many calls flow over a link of a host; each then has its part of it.
  struct Users {
    std::map<int, int> host, network;
  };
  Users users() const {
    Users u;
    for (const Call& c : calls_) {
      if (!c.flows()) continue;
      const int host = given_[c.rank].host;
      if (c.host > 0) ++u.host[host];
      if (c.network > 0) ++u.network[host];
    }
    return u;
  }

  double speed_of(size_t r) const {
    double speed = 1;
    for (const Call& c : calls_)
      if (c.rank == r && c.start >= 0 && !c.done) speed = std::min(speed, c.task->overlap);
    return speed;
  }

  double next_event() {
    const Users u = users();
    double next = kNever;
    for (size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].left > 0) next = std::min(next, ranks_[r].left / speed_of(r));
    for (const Call& c : calls_) {
      if (c.start < 0 || c.done || c.partner != nullptr) continue;
      if (c.latency > 0) {
        next = std::min(next, c.latency);
        continue;
      }
      const int host = given_[c.rank].host;
      if (c.host > 0) next = std::min(next, c.host * u.host.at(host));
      if (c.network > 0) next = std::min(next, c.network * u.network.at(host));
    }
    if (next == kNever) fail_stuck();
    return next;
  }

  void advance(double dt) {
    const Users u = users();
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      if (rank.left > 0) {
        rank.left = without(rank.left, dt * speed_of(r));
        continue;
      }
      if (rank.at == given_[r].tasks.size()) continue;
      const Call& awaited = calls_[rank.calls.at(given_[r].tasks[rank.at].call)];
      // Calls before it in its lane count, too: they are what it waits for.
      const bool under_way =
          awaited.start >= 0 || std::ranges::any_of(calls_, [&](const Call& c) {
            return c.rank == r && c.task->group == awaited.task->group && c.start >= 0 && !c.done;
          });
      if (under_way) result_.ranks[r].exposed_s += dt;
    }
    for (Call& c : calls_) {
      if (c.start < 0 || c.done || c.partner != nullptr) continue;
      if (c.latency > 0) {
        c.latency = without(c.latency, dt);
        continue;
      }
      const int host = given_[c.rank].host;
      if (c.host > 0) c.host = without(c.host, dt / u.host.at(host));
      if (c.network > 0) c.network = without(c.network, dt / u.network.at(host));
    }
    now_ += dt;
  }

  // Rounding must leave neither a remainder nor less than nothing.
  static double without(double left, double spent) {
    const double rest = left - spent;
    return rest > left * 1e-12 + kNothing ? rest : 0;
  }

  [[noreturn]] void fail_stuck() const {
    std::string who;
    for (size_t r = 0; r < ranks_.size(); ++r)
      if (ranks_[r].at < given_[r].tasks.size())
        who += str("\n  ", given_[r].name, " at '", given_[r].tasks[ranks_[r].at].name, "'");
    fail(Error::Kind::kInvalidArgument, str("the ranks wait for each other forever:", who));
  }

  const std::vector<SimulatedRank>& given_;
  std::vector<Rank> ranks_;
  std::deque<Call> calls_;                              // partners point into it
  std::map<std::string, std::vector<size_t>> waiting_;  // ends of messages, by channel
  double now_ = 0;
  Timeline result_;
};

}  // namespace

Timeline simulate(const std::vector<SimulatedRank>& ranks) { return Simulation(ranks).run(); }

}  // namespace fleetx::predict
