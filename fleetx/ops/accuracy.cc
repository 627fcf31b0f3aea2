// accuracy: how many labels are among the k highest scores x [..., classes]; of equal scores the
// lower index comes first. A label of ignore_index is not counted; a score that is not a number is
// never right. For shapes of labels see labels.h.
//   out = correct / total (f32[1]),  correct and total i32[1]
#include <atomic>
#include <cmath>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/labels.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  ops::check_labels(c, "x");
  const int64_t k = c.attr<int64_t>("k"), classes = c.in("x").shape.back();
  c.check(1 <= k && k <= classes, "k must be from 1 to the number of classes, ", classes, ", got ",
          k);
  c.out("out") = {DType::kF32, {1}};
  c.out("correct") = {DType::kI32, {1}};
  c.out("total") = {DType::kI32, {1}};
}

// Scores that come before that of the label.
int64_t rank(const float* x, int64_t label, int64_t classes) {
  int64_t before = 0;
  vectorized([=, out = &before] {
    const float score = x[label];
    int32_t count = 0;
    for (int64_t c = 0; c < label; ++c) count += x[c] >= score ? 1 : 0;
    for (int64_t c = label + 1; c < classes; ++c) count += x[c] > score ? 1 : 0;
    *out = count;
  });
  return before;
}

class Accuracy final : public kernel::Kernel {
 public:
  explicit Accuracy(kernel::Prepare& p)
      : axis_(ops::class_axis(p, "x")),
        labels_(p, "x"),
        x_(p.input("x")),
        out_(p.output("out")),
        correct_(p.output("correct")),
        total_(p.output("total")),
        k_(p.attr<int64_t>("k")) {}

  void run(const kernel::Run& r) override {
    const float* x = r.in<float>(x_);
    const ops::Labels::View labels = labels_.checked(r);
    std::atomic<int32_t> correct = 0, total = 0;
    const int64_t grain = std::max<int64_t>(1, (1 << 16) / axis_.classes);
    parallel_for(axis_.positions(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (labels[i] == labels_.ignored()) continue;
        const float* row = x + i * axis_.classes;
        ++total;
        if (!std::isnan(row[labels[i]]) && rank(row, labels[i], axis_.classes) < k_) ++correct;
      }
    });
    *r.out<int32_t>(correct_) = correct;
    *r.out<int32_t>(total_) = total;
    *r.out<float>(out_) =
        static_cast<float>(correct) / static_cast<float>(std::max(total.load(), 1));
  }

 private:
  ops::ClassAxis axis_;
  ops::Labels labels_;
  kernel::Slot x_, out_, correct_, total_;
  int64_t k_;
};

FLEETX_OP(accuracy)
    .input("x")
    .input("label")
    .output("out")
    .output("correct")
    .output("total")
    .attr("k", 1)
    .attr("ignore_index", -100)
    .infer(infer)
    .kernel<Accuracy>();

}  // namespace
}  // namespace fleetx::ops
