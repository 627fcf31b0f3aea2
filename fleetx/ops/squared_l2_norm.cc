// squared_l2_norm: sum of the squares of all elements of all xs, f32[1]. Each x is dense, in any
// layout (padding is zero), or sparse, where rows of equal ids are added up first. Summed in
// double, in a fixed order.
#include <optional>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/blocks.h"
#include "fleetx/ops/lib/sparse_rows.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  for (size_t i = 0; i < c.count("xs"); ++i)
    c.check(c.in("xs", i).dtype == DType::kF32, "xs must be f32, but ", c.show("xs", i));
  c.out("out") = {DType::kF32, {1}};
}

ir::Cost cost(const ir::Infer& c) {
  ir::Cost cost;
  for (size_t i = 0; i < c.count("xs"); ++i) {
    cost.bytes += ir::bytes_of(c.in("xs", i));
    cost.flops += ir::bytes_of(c.in("xs", i)) / 2;
  }
  return cost;
}

class SquaredNorm final : public kernel::Kernel {
 public:
  explicit SquaredNorm(kernel::Prepare& p) : out_(p.output("out")) {
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < p.count("xs"); ++i) {
      const kernel::Desc& x = p.in("xs", i);
      const bool dense = x.kind == ir::VarKind::kDense;
      lengths.push_back(dense ? x.stored() : 0);
      xs_.push_back({p.input_as_is("xs", i), x.rows, x.shape.numel(1, x.shape.rank()), {}});
      if (!dense) xs_.back().merge.emplace(p, x.rows, xs_.back().width);
    }
    blocks_ = ops::Blocks(lengths);
    squares_.resize(std::max(blocks_.size(), static_cast<size_t>(num_threads())));
  }

  void run(const kernel::Run& r) override {
    blocks_.for_each([&](size_t index, const ops::Block& b) {
      squares_[index] =
          ops::sum_of_squares(r.in<float>(xs_[b.array].slot) + b.begin, b.end - b.begin);
    });
    double sum = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) sum += squares_[b];
    for (const Array& x : xs_) {
      if (!x.merge) continue;
      std::fill(squares_.begin(), squares_.end(), 0.0);
      x.merge->for_each(r, r.rows(x.slot, x.capacity), [&](int part, int64_t, const float* row) {
        squares_[static_cast<size_t>(part)] += ops::sum_of_squares(row, x.width);
      });
      for (const double s : squares_) sum += s;
    }
    *r.out<float>(out_) = static_cast<float>(sum);
  }

 private:
  struct Array {
    kernel::Slot slot;
    int64_t capacity, width;
    std::optional<MergeRows> merge;  // where it is sparse
  };

  std::vector<Array> xs_;
  kernel::Slot out_;
  ops::Blocks blocks_;
  std::vector<double> squares_;  // of each block, or of each part of a sparse x
};

FLEETX_OP(squared_l2_norm)
    .input("xs", ir::Arity::kMany)
    .output("out")
    .infer(infer)
    .cost(cost)
    .kernel<SquaredNorm>();

}  // namespace
}  // namespace fleetx::ops
