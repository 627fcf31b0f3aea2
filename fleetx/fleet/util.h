// Small things that workers do together outside of the training step: add up a metric, agree on a
// number, divide a list of files.
//
//   Util util(joined.workers());
//   const double total = util.all_reduce(std::vector{loss})[0];
//   for (const auto& file : util.get_file_shard(files)) ...
//
// `comm_world` says who takes part: "worker", or in a job with servers "server" (called by servers
// alone) and "all", where workers come first. All of them make the same calls in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetx/comm/communicator.h"

namespace fleetx::fleet {

// The share of worker `index` of `num`: contiguous, and the first files.size() % num workers have
// one more.
std::vector<std::string> get_file_shard(const std::vector<std::string>& files, int index, int num);

class Util {
 public:
  // Of a job with servers these say more than the workers' group does.
  struct Job {
    // For a call of all its members: the servers are told that this worker waits for the others.
    // Throws for groups that this process is not in.
    std::function<comm::Communicator&(std::string_view comm_world)> group;
    std::function<std::pair<int, int>()> place;  // number of this worker, and of all workers
    std::function<void()> barrier;               // of the workers
  };
  explicit Util(Job job) : job_(std::move(job)) {}
  explicit Util(comm::Communicator& workers);  // of a job without servers

  // mode: sum, min, max. All workers give the same number of values.
  std::vector<double> all_reduce(std::vector<double> values, std::string_view mode = "sum",
                                 std::string_view comm_world = "worker") const;
  std::vector<int64_t> all_reduce(std::vector<int64_t> values, std::string_view mode = "sum",
                                  std::string_view comm_world = "worker") const;

  // By rank. Workers may give different numbers of values.
  std::vector<std::vector<double>> all_gather(const std::vector<double>& values,
                                              std::string_view comm_world = "worker") const;
  std::vector<std::vector<int64_t>> all_gather(const std::vector<int64_t>& values,
                                               std::string_view comm_world = "worker") const;
  std::vector<double> all_gather(double value, std::string_view comm_world = "worker") const;
  std::vector<int64_t> all_gather(int64_t value, std::string_view comm_world = "worker") const;

  void barrier(std::string_view comm_world = "worker") const;

  std::vector<std::string> get_file_shard(const std::vector<std::string>& files) const;
  void print_on_rank(std::string_view message, int rank) const;  // on stdout

 private:
  template <class T>
  std::vector<T> reduce(std::vector<T> values, std::string_view mode,
                        std::string_view comm_world) const;
  template <class T>
  std::vector<std::vector<T>> gather(const std::vector<T>& values,
                                     std::string_view comm_world) const;
  comm::Communicator& group(std::string_view call, std::string_view comm_world) const;
  static std::vector<int64_t> gather_one(comm::Communicator& group, int64_t value);

  Job job_;
};

}  // namespace fleetx::fleet
