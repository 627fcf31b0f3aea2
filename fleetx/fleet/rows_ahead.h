// Makes the rows that the next batch will look up, and brings them near, in a thread of its own
// while this batch computes. Changes no value: a row is a function of its id until it is trained.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "fleetx/ps/sparse_table.h"

namespace fleetx::fleet {

class RowsAhead {
 public:
  struct Lookup {
    ps::SparseTable* table;  // outlives this
    std::vector<uint64_t> ids;
  };

  RowsAhead();
  ~RowsAhead();
  RowsAhead(const RowsAhead&) = delete;
  RowsAhead& operator=(const RowsAhead&) = delete;

  // What was told before and has not begun is forgotten.
  void tell(std::vector<Lookup> lookups);
  void wait_until_idle();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lookup> told_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace fleetx::fleet
