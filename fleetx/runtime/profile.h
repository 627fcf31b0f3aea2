// Where the time goes: per op kind and role, with achieved GFLOP/s and GB/s; and per call to other
// ranks, how much of it the computation has not hidden.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fleetx/runtime/plan.h"

namespace fleetx::runtime {

class Profile {
 public:
  struct Row {
    int64_t calls = 0;
    double seconds = 0, flops = 0, bytes = 0;
  };

  // A call of the program, such as the reduction of a bucket.
  struct CallRow {
    std::string name;  // "all_reduce fc_1.w_0@GRAD, ..."
    int64_t steps = 0;
    double bytes = 0;           // of the variables
    double bytes_sent = 0;      // to other hosts
    double seconds = 0;         // from its begin to its end
    double waited_seconds = 0;  // of it, in which this rank had nothing else to do
  };

  void add(const Step& step, double seconds);
  void add(const CallRow& call);  // of one step
  bool empty() const { return rows_.empty(); }
  double seconds() const;
  const std::map<std::string, Row>& rows() const { return rows_; }  // "backward conv2d_grad"
  const std::vector<CallRow>& calls() const { return calls_; }      // in the order of their ends
  // Sorted by time: op, calls, ms, share, GFLOP/s, GB/s. Then calls: MB, MB sent, ms, ms waited for
  // it, in the mean of all steps.
  std::string table() const;

 private:
  std::string table_of_calls() const;

  std::map<std::string, Row> rows_;
  std::vector<CallRow> calls_;
};

}  // namespace fleetx::runtime
