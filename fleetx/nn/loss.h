// Losses. Each gives one value per example (or element); take nn::mean of it to train.
#pragma once

#include "fleetx/nn/call.h"

namespace fleetx::nn {

struct CrossEntropyOptions {
  bool soft_label = false;      // label holds probabilities, in the shape of x
  int64_t ignore_index = -100;  // hard labels of this value cost nothing
  int axis = -1;                // of the classes
  double smoothing = 0.0;       // softmax_cross_entropy: of a hard label, spread over all classes
};

// -log of the probability of the label; x holds probabilities. Label i64 [..., 1].
Var cross_entropy(const Var& x, const Var& label, CrossEntropyOptions o = {},
                  Where where = Where::current());
// The same from logits: stable, and cheaper than softmax and cross_entropy.
Var softmax_cross_entropy(const Var& logits, const Var& label, CrossEntropyOptions o = {},
                          Where where = Where::current());

struct SigmoidCrossEntropyOptions {
  int64_t ignore_index = -100;
  bool normalize = false;  // divide by the number of elements that are not ignored
};
// Two classes, label 0 or 1 (f32) in the shape of the logits.
Var sigmoid_cross_entropy(const Var& logits, const Var& label, SigmoidCrossEntropyOptions o = {},
                          Where where = Where::current());
// The same from probabilities.
Var log_loss(const Var& x, const Var& label, double epsilon = 1e-4, Where where = Where::current());

Var mse_loss(const Var& x, const Var& label, Where where = Where::current());  // (x - label)^2
Var l1_loss(const Var& x, const Var& label, Where where = Where::current());   // |x - label|
// Quadratic below delta, linear above.
Var smooth_l1_loss(const Var& x, const Var& label, double delta = 1.0,
                   Where where = Where::current());

}  // namespace fleetx::nn
