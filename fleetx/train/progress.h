// One line that tells how training goes. On a terminal it is redrawn in place; elsewhere (a file, a
// pipe) only whole lines are written.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace fleetx::train {

// The mean of values with weights, added one by one.
class Mean {
 public:
  void add(double value, double weight = 1) {
    sum_ += value * weight;
    weight_ += weight;
  }
  double weight() const { return weight_; }
  double value() const { return weight_ > 0 ? sum_ / weight_ : std::nan(""); }

 private:
  double sum_ = 0, weight_ = 0;
};

struct Status {
  int64_t epoch = 0, epochs = 0;  // counted from 1
  int64_t step = 0, steps = 0;    // of this epoch
  double loss = std::nan("");
  double accuracy = std::nan("");  // of 1; NaN: there is none
  double rate = 0;                 // items per second
  std::string items = "images";
  double seconds_left = 0;
};

enum class Bar { kNo, kYes };
// epoch 1/3 [=====>    ] 346/938  loss 0.5132  acc 81.25 %  12,345 images/s  ETA 0:07
std::string to_line(const Status& status, Bar bar);
std::string to_clock(double seconds);  // 0:07, 12:30, 1:02:03

class Progress {
 public:
  explicit Progress(std::FILE* out);  // null: says nothing
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool live() const { return live_; }
  // Redraws the line, at most ten times a second; nothing where the output is no terminal.
  void show(const Status& status);
  // A line that stays.
  void say(const std::string& text);

 private:
  void clear();

  std::FILE* out_;
  bool live_ = false;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace fleetx::train
