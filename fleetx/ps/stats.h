// What a server tells about itself: `fleetx ps HOST:PORT`.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::ps {

struct TableStats {
  std::string name;
  int64_t rows = 0;                // sparse: rows; dense: values
  int64_t resident = 0;            // of them in memory; the others are on disk
  int64_t bytes = 0;               // of memory
  int64_t version = 0;             // pushes applied (sync: steps)
  int64_t pulled = 0, pushed = 0;  // rows or values since the start
  int64_t waiting = 0;             // pulls that wait for other workers
};

struct WorkerStats {
  int64_t worker = 0;
  std::string state;     // never seen, connected, lost, gone (said goodbye)
  int64_t sequence = 0;  // last push that was applied
  double silent_seconds = 0;
};

struct ServerStats {
  int64_t server = 0, servers = 1;
  double seconds = 0;                           // since the start
  int64_t pulls = 0, pushes = 0, repeated = 0;  // requests; pushes that had been applied before
  double pulls_per_second = 0, pushes_per_second = 0;  // of the last seconds
  int64_t bytes_in = 0, bytes_out = 0;
  int64_t memory_used = 0, memory_budget = 0;  // bytes; 0: no budget
  std::vector<TableStats> tables{};
  std::vector<WorkerStats> workers{};
};

// Events per second, of the last seconds.
class RateMeter {
 public:
  void measure(int64_t count);  // of all so far; now and then
  double rate() const { return rate_; }

 private:
  std::chrono::steady_clock::time_point measured_ = std::chrono::steady_clock::now();
  int64_t counted_ = 0;
  std::atomic<double> rate_{0};
};

// As a payload of a message. An invalid one is kCorrupt.
std::string encode(const ServerStats& stats);
ServerStats decode_stats(std::string_view bytes);
std::string to_text(const ServerStats& stats);  // for people

}  // namespace fleetx::ps
