// crf_decoding: the most likely tags of each sequence under a conditional random field (weights as
// in linear_chain_crf): those whose weights have the largest sum, found row by row and then from
// the last row back (Viterbi). path [N] i64; with `label`, 1 where the tag is the label and 0
// elsewhere. Rows of no sequence give 0. No gradient.
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/recurrence.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  check_random_field(c);
  c.out("path") = {i64, {c.in("x").shape[0]}};
}

ir::Cost cost(const ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  return {.flops = 2.0 * static_cast<double>(x[0] * x[1] * x[1])};
}

class Decoding final : public kernel::Kernel {
 public:
  explicit Decoding(kernel::Prepare& p)
      : sequences_(p, p.in("x").shape[0], false),
        tags_(p.in("x").shape[1]),
        rows_(p.in("x").shape[0]),
        x_(p.input("x")),
        transition_(p.input("transition")),
        label_(p.input("label")),
        path_(p.output("path")),
        best_(p.scratch(static_cast<size_t>(rows_ * tags_) * sizeof(float))),
        from_(p.scratch(static_cast<size_t>(rows_ * tags_) * sizeof(int32_t))) {}

  void run(const kernel::Run& r) override {
    const Sequences::Sorted s = sequences_.sorted(r);
    auto* path = r.out<int64_t>(path_);
    std::fill_n(path, rows_, int64_t{0});
    parallel_for(sequences_.count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (s.length(i) > 0) decode(r, s.row(i, 0), s.length(i), path + s.row(i, 0));
    });
  }

 private:
  void decode(const kernel::Run& r, int64_t begin, int64_t length, int64_t* path) const {
    const float *w = r.in<float>(transition_), *x = r.in<float>(x_) + begin * tags_;
    float* best = r.out<float>(best_) + begin * tags_;
    auto* from = r.out<int32_t>(from_) + begin * tags_;
    for (int64_t i = 0; i < tags_; ++i) best[i] = w[i] + x[i];
    for (int64_t t = 1; t < length; ++t) {
      const float* last = best + (t - 1) * tags_;
      for (int64_t i = 0; i < tags_; ++i) {
        int64_t chosen = 0;
        float top = last[0] + w[2 * tags_ + i];
        for (int64_t j = 1; j < tags_; ++j) {
          const float sum = last[j] + w[(2 + j) * tags_ + i];
          if (!(sum > top)) continue;
          top = sum;
          chosen = j;
        }
        best[t * tags_ + i] = top + x[t * tags_ + i];
        from[t * tags_ + i] = static_cast<int32_t>(chosen);
      }
    }
    const float* last = best + (length - 1) * tags_;
    int64_t tag = 0;
    for (int64_t i = 1; i < tags_; ++i)
      if (last[i] + w[tags_ + i] > last[tag] + w[tags_ + tag]) tag = i;
    const int64_t* label = label_ ? r.in<int64_t>(label_) + begin : nullptr;
    for (int64_t t = length - 1; t >= 0; --t) {
      path[t] = !label ? tag : label[t] == tag ? 1 : 0;
      if (t > 0) tag = from[t * tags_ + tag];
    }
  }

  Sequences sequences_;
  int64_t tags_, rows_;
  kernel::Slot x_, transition_, label_, path_;
  kernel::Slot best_,
      from_;  // of every row and tag: the largest sum that ends there, and its last step
};

FLEETX_OP(crf_decoding)
    .input("x")
    .input("transition")
    .input("label", ir::Arity::kOptional)
    .input("starts")
    .input("lengths")
    .output("path")
    .infer(infer)
    .cost(cost)
    .kernel<Decoding>();

}  // namespace
}  // namespace fleetx::ops
