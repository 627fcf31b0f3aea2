// The tables of a server, and what pulls and pushes of several workers do to them: which pull has
// to wait for whom, and how the pushes of a step become one. Knows no sockets: answers go to a
// Peer. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/ps/dense_table.h"
#include "fleetx/ps/payload.h"
#include "fleetx/ps/sparse_table.h"
#include "fleetx/ps/stats.h"
#include "fleetx/ps/wire.h"

namespace fleetx::ps {

// Who asked. send() may be called from any thread, and drops what a peer that is gone should get.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void send(wire::Header header, Payload payload) = 0;
};
using PeerPtr = std::shared_ptr<Peer>;

void reply(Peer& peer, const wire::Header& request, Payload payload = {}, uint64_t count = 0);
void refuse(Peer& peer, const wire::Header& request, Error::Kind kind, const std::string& why);

struct Request {
  PeerPtr peer;
  wire::Header header;
  int worker = 0;
};

// How far a table is.
struct TableProgress {
  uint64_t applied = 0;            // sync: steps; async: pushes
  std::vector<uint64_t> pushed{};  // by each worker
};

class TableService {
 public:
  TableService(const JobSpec& job, int server, int threads, PayloadPool& pool,
               const MemoryLimits& limits = {});

  // The size that the payload of this request must have; kInvalidArgument for a table that does not
  // exist, or a count that no worker sends.
  uint64_t payload_bytes(const wire::Header& header) const;
  // Ids that came as deltas, as they are in memory.
  void expand_ids(wire::Header& header, Payload& payload);

  void pull(Request request, const Payload& ids);
  void push(const Request& request,
            Payload payload);  // replies when it is applied, or kept for its step
  void set_dense(const Request& request, const Payload& values);

  // Sync: a worker has come to this meeting of all workers (a reduction, a barrier), and pushes
  // nothing until the last one has come. Steps of the others do not wait for it meanwhile: they
  // would wait for each other.
  void meet(int worker, uint64_t meeting);
  // Sync: which workers pulls have been waiting for so long, told once for each wait.
  std::vector<std::string> long_waits(std::chrono::milliseconds least);

  // A worker has left: no step waits for it. Or is lost: `why` says how; "" : it is (back) here.
  void leave(int worker);
  void lose(int worker, const std::string& why);
  // A worker was started again and counts its pushes from here on; what is needed for its welcome.
  std::vector<uint64_t> pushes_of(int worker) const;

  // For a server that goes on from a snapshot. confirm(): a worker knows of this many pushes of
  // each table; those that the snapshot does not have are lost. Says which: "w 3, rows 2".
  bool has_values() const;  // all dense tables have
  std::vector<TableProgress> progress() const;
  void restore(const std::vector<TableProgress>& progress);
  std::string confirm(int worker, const std::vector<uint64_t>& pushes);

  // For a copy that gets the state of its server (server_state.h). Sync: pushes that wait for those
  // of other workers; `state` counts dense tables first.
  using VisitPending = std::function<void(size_t state, size_t worker, const wire::Header& header,
                                          std::string_view payload)>;
  void for_each_pending(const VisitPending& visit) const;
  void keep_pending(size_t state, size_t worker, const wire::Header& header,
                    std::string_view payload);
  struct Member {
    bool left = false;
    uint64_t meeting = 0;
  };
  void clear();  // a copy that is out of date; it answers nobody
  std::vector<Member> members() const;
  void set_members(const std::vector<Member>& members);

  int64_t shrink(std::optional<float> threshold);  // see SparseTable
  std::vector<TableStats> stats() const;
  int64_t memory_used() const { return budget_ ? budget_->used() : 0; }

  struct Dense {
    Dense(const DenseSpec& s, const std::vector<Block>& blocks, int server)
        : spec(s), values(s, blocks, server) {}
    const DenseSpec& spec;
    mutable std::mutex mutex;  // of the rest
    DenseTable values;
    std::vector<std::vector<float>> pulled{};  // delays compensated: by each worker, the last time
  };
  std::vector<std::unique_ptr<Dense>>& dense() { return dense_; }
  std::vector<std::unique_ptr<SparseTable>>& sparse() { return sparse_; }
  const JobSpec& job() const { return job_; }
  // The number of the last base (snapshot.h), from which changes are counted; 0: there is none. Of
  // the thread that saves.
  uint64_t base = 0;
  // After a load: pulls that waited for first values are answered.
  void answer_waiting();

 private:
  struct Push {
    wire::Header header;
    Payload payload;
  };
  struct Waiting {
    Request request;
    Payload ids;
  };
  // What is common to both kinds of tables.
  struct State {
    mutable std::mutex mutex;
    std::vector<std::deque<Push>> pending;  // sync: of each worker, not yet applied
    std::vector<uint64_t> pushed;           // by each worker
    uint64_t applied = 0;                   // sync: steps; async: pushes
    std::vector<Waiting> waiting;
    std::chrono::steady_clock::time_point waits_since{};  // the first of them
    bool named = false;                                   // whom they wait for
    std::string broken;  // sync: why a step could not be applied; nothing goes on after it
    std::atomic<int64_t> pulled_items{0}, pushed_items{0};
  };

  State& state_of(const wire::Header& header);
  bool is_dense(const wire::Header& h) const;
  const std::string& name_of(const State& state) const;
  bool is_waited_for(size_t worker) const;
  bool ready(const Request& request, const State& state) const;
  void answer_pull(const Request& request, const Payload& ids);
  void push_uses(const Request& request, const Payload& payload);
  void answer_ready(State& state);
  void apply_steps(State& state);
  void apply(const wire::Header& header, Payload& payload, size_t worker);
  void apply_dense_step(std::vector<Push> step);
  void apply_sparse_step(std::vector<Push> step);

  void limit_memory(const MemoryLimits& limits);

  const JobSpec& job_;
  PayloadPool& pool_;
  std::unique_ptr<MemoryBudget> budget_;        // null: none
  std::unique_ptr<MemoryBudget::Share> fixed_;  // what does not grow
  std::unique_ptr<DiskRows> disk_;
  std::vector<std::unique_ptr<Dense>> dense_;
  std::vector<std::unique_ptr<SparseTable>> sparse_;
  std::vector<std::unique_ptr<State>> states_;  // dense tables first

  mutable std::mutex members_mutex_;
  std::vector<bool> left_;
  std::vector<std::string> lost_;  // of each worker: how; "": it is not
  std::vector<uint64_t> meeting_;  // that each worker has come to
};

}  // namespace fleetx::ps
