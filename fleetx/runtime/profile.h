// Where the time goes: per op kind and role, with achieved GFLOP/s and GB/s.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fleetx/runtime/plan.h"

namespace fleetx::runtime {

class Profile {
 public:
  struct Row {
    int64_t calls = 0;
    double seconds = 0, flops = 0, bytes = 0;
  };

  void add(const Step& step, double seconds);
  bool empty() const { return rows_.empty(); }
  double seconds() const;
  const std::map<std::string, Row>& rows() const { return rows_; }  // "backward conv2d_grad"
  // Sorted by time: op, calls, ms, share, GFLOP/s, GB/s.
  std::string table() const;

 private:
  std::map<std::string, Row> rows_;
};

}  // namespace fleetx::runtime
