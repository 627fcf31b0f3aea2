// What training has achieved so far: a table that is kept in checkpoints, written as CSV and drawn
// as curves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetx::train {

struct Record {
  std::string split;  // train or test
  int64_t epoch = 0;  // counted from 1
  int64_t step = 0;   // updates done
  double loss = 0;
  double accuracy = 0;  // of 1; NaN: there is none
  double seconds = 0;   // since training began, pauses not counted
};

class History {
 public:
  void add(Record record) { records_.push_back(std::move(record)); }
  const std::vector<Record>& records() const { return records_; }
  bool empty() const { return records_.empty(); }

  // Numbers are written so that they read back to the same bits.
  std::string to_csv() const;
  static History parse_csv(std::string_view text, std::string_view source);
  // Loss, and accuracy if there is any, against the step.
  void plot(const std::string& path) const;

 private:
  std::vector<Record> records_;
};

}  // namespace fleetx::train
