// What lstm and gru share: which rows a step computes, in which order, and activations of rows.
#pragma once

#include <string>

#include "fleetx/kernel/op.h"

namespace fleetx::ops {

// How activations of recurrent layers are written in attributes. kActivations' order.
enum class Activation : uint8_t { kSigmoid, kTanh, kRelu, kIdentity };
void check_activation(const ir::Infer& c, const char* attr);
Activation activation_of(const kernel::Prepare& p, const char* attr);
// v[i] = f(v[i])
void activate(Activation f, float* v, int64_t n);
// The slope of an activation where its result is y, without branches: a loop over a row vectorises.
struct Slope {
  float a, b, c, floor;
  explicit Slope(Activation f);
  float operator()(float y) const { return y <= floor ? 0.0f : a + y * (b + c * y); }
};

// Inputs `starts` and `lengths`: i64 of one length, which is the number of sequences.
void check_sequences(const ir::Infer& c);
// These, and inputs x, transition and label (optional) of a conditional random field.
void check_random_field(const ir::Infer& c);
// sum[j] = the sum over all rows of a [rows, stride] at column j (< columns).
void sum_columns(const float* a, int64_t rows, int64_t columns, int64_t stride, float* sum);

// The sequences of one run. Sorted by length, longest first, those that are in step t are the first
// active(t) ones: states stand in that order, so that a step is one product of their first rows.
class Sequences {
 public:
  Sequences(kernel::Prepare& p, int64_t rows, bool reverse);

  int64_t count() const { return count_; }
  // The sequences of a run, checked and sorted; valid until the next run of this kernel.
  class Sorted {
   public:
    int64_t steps() const { return count_ == 0 ? 0 : lengths_[order_[0]]; }
    int64_t active(int64_t step) const;
    int64_t sequence(int64_t place) const { return order_[place]; }
    int64_t length(int64_t place) const { return lengths_[order_[place]]; }
    // The row of x that the sequence at `place` has in this step.
    int64_t row(int64_t place, int64_t step) const {
      const int64_t b = order_[place];
      return starts_[b] + (reverse_ ? lengths_[b] - 1 - step : step);
    }
    // Fills the rows that belong to no sequence with zeros.
    void clear_others(float* rows, int64_t width) const;
    // to [rows, width]: of every row the one before it in its sequence, `first` [count, width] or
    // zeros before the first.
    void shift(const float* rows, const float* first, float* to, int64_t width) const;

   private:
    friend class Sequences;
    const int64_t *starts_, *lengths_, *order_;
    int64_t count_, rows_;
    bool reverse_;
  };
  Sorted sorted(const kernel::Run& r) const;

 private:
  kernel::Slot starts_, lengths_, order_;
  int64_t count_, rows_;
  bool reverse_;
  std::string where_;
};

}  // namespace fleetx::ops
