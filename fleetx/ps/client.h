// A worker's connection to all servers of its job. Calls return a Ticket at once; requests go to
// all servers in parallel and are answered in any order. Thread-safe.
//
//   Client client({.job = spec, .worker = rank, .servers = {"10.0.0.1:6170", ...}, .secret = ...});
//   if (rank == 0) client.set_dense(0, values).wait();
//   for each batch:
//     client.pull_dense(0, values).wait();  // sync: waits for the last step of all workers
//     auto ids = std::make_shared<const IdBatch>(batch_ids, client.servers());
//     client.pull_sparse(0, ids, rows).wait();
//     ...
//     client.push_dense(0, gradients, lr);
//     client.push_sparse(0, ids, row_gradients, lr);
//   client.goodbye();
//
// In sync mode a worker pushes every table once per step, also one of whose rows its batch has
// none. A connection that breaks is made again and unanswered requests are sent again; servers
// recognise pushes they have applied. A server that cannot be reached for `reconnect_timeout` is
// named in the error of every call that needs it. One whose copy is in its place (ps/server.h) is
// found there, by workers that start later, too. A server that was started again and goes on from
// its snapshot (ps/server.h) is taken back within that time.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetx/ps/id_batch.h"
#include "fleetx/ps/job_spec.h"
#include "fleetx/ps/save_options.h"
#include "fleetx/ps/stats.h"

namespace fleetx::ps {

struct ClientOptions {
  JobSpec job;
  int worker = 0;
  std::vector<std::string> servers;     // ip:port
  std::string secret, secret_source{};  // the latter for errors: where it comes from
  std::string job_id = "default";
  // Servers may start later than workers; each is named in the log while it is waited for.
  std::chrono::milliseconds connect_timeout{60'000};
  std::chrono::milliseconds reconnect_timeout{10'000};
  // A server of which nothing is heard for so long is named in the log, and connected to again.
  std::chrono::milliseconds silence{4'000};
  // Of a call; in sync mode it includes waiting for the slowest worker.
  std::chrono::milliseconds request_timeout{300'000};
  int max_pushes = 16;  // not yet acknowledged; then push_* waits
};

// The answer to come. Memory that was given to the call is used until then, and what was pulled is
// there when wait() has returned.
class Ticket {
 public:
  Ticket() = default;
  bool done() const;
  void wait();  // throws what went wrong, once

  struct State;
  explicit Ticket(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

enum class Rows : uint8_t {
  kUnique,    // one row for each of ids.unique()
  kExpanded,  // one row for each given id; pushed ones of equal ids are summed
};

class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();  // without goodbye() the servers take this worker for lost
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int servers() const;
  int worker() const;

  // Dense tables: one pointer per parameter of the table, in its order, to as many values as the
  // parameter has.
  Ticket pull_dense(int table, std::span<float* const> values);
  Ticket push_dense(int table, std::span<const float* const> gradients, float lr);
  // First values, from one worker; pulls wait for them. Ignored where the table has values already
  // (from a snapshot).
  Ticket set_dense(int table, std::span<const float* const> values);

  // Sparse tables. Row gradients are copied before the call returns.
  Ticket pull_sparse(int table, std::shared_ptr<const IdBatch> ids, float* rows,
                     Rows form = Rows::kExpanded, Absent absent = Absent::kMake);
  Ticket push_sparse(int table, std::shared_ptr<const IdBatch> ids, const float* gradients,
                     float lr, Rows form = Rows::kExpanded);
  // Tables with statistics: for each given id, how often it was shown and clicked.
  Ticket push_uses(int table, const IdBatch& ids, std::span<const float> shows,
                   std::span<const float> clicks);

  void flush();    // waits for all pushes; throws the first error of those nobody waited for
  void barrier();  // of all workers that have not said goodbye
  // Sync: this worker is about to wait for all others, outside of the servers; all call it before
  // it. Those that have more batches go on training without this worker, instead of waiting for it
  // while it waits for them. When it returns, all pushes of this worker have been applied or kept.
  void meet();
  // All servers write their part of a snapshot into this folder of theirs; complete when the call
  // returns. One worker calls it.
  void save(const std::string& folder, const SaveOptions& options = {});
  void load(const std::string& folder);
  // Drops rows (SparseTable::shrink); how many.
  int64_t shrink(std::optional<float> threshold = std::nullopt);
  std::vector<ServerStats> stats();
  // Waits for all pushes, then leaves. A server ends when all workers have left.
  void goodbye();
  void stop_servers();  // at once

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Asks a server how it is, without taking part in its job. Throws kComm or kTimeout.
ServerStats read_stats(const std::string& endpoint, const std::string& secret,
                       const std::string& job_id, std::chrono::milliseconds timeout);

}  // namespace fleetx::ps
