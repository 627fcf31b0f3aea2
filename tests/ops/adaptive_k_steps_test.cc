#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Numbers {
  int64_t k = 0, step = 0;
  float loss0 = 0, lr0 = 0, loss = 0, lr = 0;
};

Tensor integer(int64_t value) { return Tensor::of<int64_t>({1}, {value}); }
Tensor number(float value) { return Tensor::of<float>({1}, {value}); }

OpCase make(const std::string& label, const Numbers& in, const Numbers& want, int64_t init) {
  return {.label = label,
          .inputs = {OpInput("k", integer(in.k)).state(),
                     OpInput("loss0", number(in.loss0)).state(),
                     OpInput("lr0", number(in.lr0)).state(),
                     {"loss", number(in.loss)},
                     {"lr", number(in.lr)},
                     {"step", integer(in.step)}},
          .attrs = {{"init_k_steps", init}, {"begin_step", 2}},
          .updates = {{"k_out", "k"}, {"loss0_out", "loss0"}, {"lr0_out", "lr0"}},
          .reference = [want](const Tensors&) -> Tensors {
            return {integer(want.k), number(want.loss0), number(want.lr0)};
          },
          .gradient = false};
}

const AddCases cases("adaptive_k_steps", [](Cases& c) {
  // The first step keeps loss and rate; k stays until begin_step.
  c.add(make("first", {.k = 4, .step = 1, .loss0 = 0, .lr0 = 0, .loss = 2.5f, .lr = 0.1f},
             {.k = 4, .loss0 = 2.5f, .lr0 = 0.1f}, 4));
  c.add(make("early", {.k = 4, .step = 2, .loss0 = 2, .lr0 = 1, .loss = 8, .lr = 1},
             {.k = 4, .loss0 = 2, .lr0 = 1}, 4));
  // sqrt(1 * 0.5 / (1 * 2) * 4) = 1; sqrt(0.1 * 1 / (0.01 * 2) * 4) = 4.47
  c.add(make("less", {.k = 4, .step = 3, .loss0 = 2, .lr0 = 1, .loss = 0.5f, .lr = 1},
             {.k = 1, .loss0 = 2, .lr0 = 1}, 4));
  c.add(make("rate", {.k = 4, .step = 9, .loss0 = 2, .lr0 = 0.1f, .loss = 1, .lr = 0.01f},
             {.k = 5, .loss0 = 2, .lr0 = 0.1f}, 4));
  c.add(make("most", {.k = 4, .step = 9, .loss0 = 1, .lr0 = 1, .loss = 1000, .lr = 1},
             {.k = 16, .loss0 = 1, .lr0 = 1}, 4));
  c.add(make("loss_is_zero", {.k = 4, .step = 9, .loss0 = 1, .lr0 = 1, .loss = 0, .lr = 1},
             {.k = 1, .loss0 = 1, .lr0 = 1}, 4));
  // Nothing to divide by, or no number: k stays.
  c.add(make("loss0_is_zero", {.k = 3, .step = 9, .loss0 = 0, .lr0 = 1, .loss = 1, .lr = 1},
             {.k = 3, .loss0 = 0, .lr0 = 1}, 4));
  c.add(make("both_are_zero", {.k = 3, .step = 9, .loss0 = 0, .lr0 = 1, .loss = 0, .lr = 1},
             {.k = 3, .loss0 = 0, .lr0 = 1}, 4));
  c.add(make("rate_is_zero", {.k = 3, .step = 9, .loss0 = 1, .lr0 = 1, .loss = 1, .lr = 0},
             {.k = 3, .loss0 = 1, .lr0 = 1}, 4));
  c.add(make("negative", {.k = 3, .step = 9, .loss0 = 1, .lr0 = 1, .loss = -1, .lr = 1},
             {.k = 3, .loss0 = 1, .lr0 = 1}, 4));
  c.add(make("nan", {.k = 3, .step = 9, .loss0 = 1, .lr0 = 1, .loss = NAN, .lr = 1},
             {.k = 3, .loss0 = 1, .lr0 = 1}, 4));
});

}  // namespace
}  // namespace fleetx::testing
