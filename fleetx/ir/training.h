// What a program trains: the loss, the gradient that backward begins with, and each parameter with
// the gradient and the learning rate of its update. Autograd and the optimizer fill it in;
// strategies ask it instead of searching the ops, and the Rewriter keeps it true. Part of the
// Program: printed, saved, and checked by the verifier. Empty for programs that only compute.
//
//   training:
//   loss(mean_0.tmp_0, mean_0.tmp_0@GRAD)
//   step(@step@)
//   ready(amp_finite_0)
//   parameter(fc_0.w_0, fc_0.w_0@GRAD, learning_rate_0)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetx::ir {

struct Op;
class Program;

struct Training {
  struct Parameter {
    std::string name;
    std::string gradient;            // that the update reads, or will read
    std::string learning_rate = "";  // of its update; "": it has none yet
    bool operator==(const Parameter&) const = default;
  };

  std::string loss = "";
  std::string seed = "";  // the gradient of the loss: one op of backward writes it
  std::string step = "";  // number of steps done, i64[1]; "" before there are updates
  // Whether the gradients are to be applied in this step, bool[1]; "": in every step. Strategies
  // that leave steps out (bad gradients, batches that are merged) set it before the optimizer
  // comes, which puts its updates under it.
  std::string ready = "";
  std::vector<Parameter> parameters = {};  // in the order in which backward makes their gradients

  bool empty() const { return loss.empty(); }
  const Parameter* find(std::string_view parameter) const;  // null: not trained
  const Parameter* find_gradient(std::string_view variable) const;
  bool mentions(std::string_view variable) const;
  bool operator==(const Training&) const = default;
};

// For strategies: what they cannot work without. `who` begins the error.
const Training& training_of(const Program& program, std::string_view who);

}  // namespace fleetx::ir
