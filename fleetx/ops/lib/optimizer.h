// The ops of optimizers; their formulas are in optimizers/<name>.h (see optimizers/lib/rule.h).
// Slots are lists, so that one op can update all parameters of a program in one sweep:
//
//   momentum(param*, grad*, velocity*, lr, scale?) -> param_out*, velocity_out* {mu, nesterov, ...}
//
// Outputs are the variables of the inputs, updated in place. All optimizer ops have the lists
// lr_factors, l1 and l2 (and some of them with_decay): one value per parameter, or none at all,
// which means 1, 0, 0 (and 1). lr is multiplied by lr_factors[i], the gradient that a rule sees is
// scale * grad + l2 * param + l1 * sign(param).
//
// Parameters and dense gradients are f32, bf16 or f16, states f32 or bf16: computed in f32, then
// rounded. Single numbers (powers of beta) are f32.
//
// An update is element-wise, so it works in whatever layout the parameter has. With a sparse
// gradient only the rows that it names are touched, each once with the sum of its gradients (lazy
// mode).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/blocks.h"
#include "fleetx/ops/lib/sparse_rows.h"
#include "fleetx/ops/lib/update_elements.h"
#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::ops {

// A registrar with the slots and attributes that the declaration asks for, without a kernel.
ir::OpRegistrar optimizer_op(const optim::OptimizerDef& def);
// Element i of a list attribute with one value per parameter, or `fallback` where it is empty.
double per_parameter(const kernel::Prepare& p, std::string_view attr, size_t i, double fallback);

// A parameter or a state in memory.
struct Stored {
  void* data = nullptr;
  DType dtype = f32;

  // n elements as f32: where they stand, or in `buffer`.
  float* load(int64_t begin, int64_t n, float* buffer) const {
    if (dtype == f32) return static_cast<float*>(data) + begin;
    dtype == bf16 ? copy(static_cast<const BFloat16*>(data) + begin, buffer, n)
                  : copy(static_cast<const Half*>(data) + begin, buffer, n);
    return buffer;
  }
  void store(int64_t begin, int64_t n, const float* buffer) const {
    if (dtype == bf16) copy(buffer, static_cast<BFloat16*>(data) + begin, n);
    if (dtype == f16) copy(buffer, static_cast<Half*>(data) + begin, n);
  }

 private:
  template <class From, class To>
  static void copy(const From* from, To* to, int64_t n) {
    vectorized([=] {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
    });
  }
};

// Rule: see optimizers/lib/rule.h.
template <class Rule>
class UpdateKernel final : public kernel::Kernel {
 public:
  template <class Options>
  UpdateKernel(kernel::Prepare& p, const Options& o)
      : lr_(p.input("lr")), scale_(p.input("scale")) {
    const size_t n = p.count("param");
    params_.reserve(n);
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < n; ++i) {
      params_.emplace_back(p, o, i);
      lengths.push_back(params_.back().merge ? 0 : params_.back().stored);
    }
    blocks_ = Blocks(lengths);
    if constexpr (kNorms) squares_.resize(blocks_.size());
  }

  void run(const kernel::Run& r) override {
    const float lr = *r.in<float>(lr_);
    const float scale = scale_ ? *r.in<float>(scale_) : 1.0f;
    for (Param& param : params_) param.bind(r, lr, scale);
    if constexpr (kNorms) measure();
    for (Param& param : params_) param.step = param.rule.step(param.args);
    blocks_.for_each([&](size_t, const Block& b) {
      const Param& param = params_[b.array];
      update(param, b.begin, nullptr, b.end - b.begin);
    });
    for (const Param& param : params_)
      if (param.merge) update_rows(r, param);
    if constexpr (kPowers) {
      for (const Param& param : params_) {
        *r.out<float>(param.powers[0].out) *= param.rule.beta1;
        *r.out<float>(param.powers[1].out) *= param.rule.beta2;
      }
    }
  }

  std::string_view implementation() const override { return "sweep"; }

 private:
  static constexpr size_t kCount = Rule::kStates.size();
  static constexpr bool kPowers = optim::has_powers<Rule>(), kNorms = optim::has_norms<Rule>();
  using Elements = UpdateElements<Rule>;
  using Step = typename Elements::Step;
  using Pointers = typename Elements::Pointers;

  struct InOut {
    kernel::Slot in, out;
    DType dtype = f32;
    // Where the plan had to convert a state between layouts, output and input are not one memory.
    Stored updated(const kernel::Run& r, int64_t n) const {
      if (r.raw(in) != r.raw(out))
        std::memcpy(r.raw(out), r.raw(in), static_cast<size_t>(n) * size_of(dtype));
      return {r.raw(out), dtype};
    }
  };

  struct Param {
    template <class Options>
    Param(kernel::Prepare& p, const Options& o, size_t i)
        : rule(optim::make_rule<Rule>(o, decays(p, i))),
          lr_factor(static_cast<float>(per_parameter(p, "lr_factors", i, 1.0))),
          decay{1.0f, static_cast<float>(per_parameter(p, "l1", i, 0.0)),
                static_cast<float>(per_parameter(p, "l2", i, 0.0))} {
      const bool sparse = p.in("grad", i).kind == ir::VarKind::kSparseRows;
      const Layout layout = sparse ? Layout::plain() : p.in("param", i).layout;
      stored = layout.stored(p.in("param", i).shape);
      const auto bind_state = [&](std::string_view name, const Layout& wanted) {
        return InOut{p.input(name, i, wanted), p.output(str(name, "_out"), i, wanted),
                     p.in(name, i).dtype};
      };
      param = bind_state("param", layout);
      grad = p.input("grad", i, layout);
      gradient.dtype = p.in("grad", i).dtype;
      for (size_t k = 0; k < kCount; ++k) states[k] = bind_state(Rule::kStates[k], layout);
      if constexpr (kPowers)
        powers = {bind_state("beta1_pow", Layout::plain()),
                  bind_state("beta2_pow", Layout::plain())};
      if (!sparse) return;
      const Shape& shape = p.in("param", i).shape;
      capacity = p.in("grad", i).rows;
      width = shape.numel(1, shape.rank());
      merge.emplace(p, capacity, width);
    }

    static bool decays(const kernel::Prepare& p, size_t i) {
      return p.op().def->find_attr("with_decay") == nullptr ||
             per_parameter(p, "with_decay", i, 1.0) != 0;
    }

    void bind(const kernel::Run& r, float lr, float scale) {
      data[0] = param.updated(r, stored);
      gradient.data = merge ? nullptr : r.raw(grad);
      for (size_t k = 0; k < kCount; ++k) data[k + 1] = states[k].updated(r, stored);
      decay.scale = scale;
      args.lr = lr * lr_factor;
      if constexpr (kPowers) {
        args.beta1_pow = *static_cast<float*>(powers[0].updated(r, 1).data);
        args.beta2_pow = *static_cast<float*>(powers[1].updated(r, 1).data);
      }
    }

    bool in_f32() const {
      return gradient.dtype == f32 &&
             std::all_of(data.begin(), data.end(), [](const Stored& s) { return s.dtype == f32; });
    }

    Rule rule;
    Step step{};
    optim::StepArgs args{};
    float lr_factor;
    Decay decay;
    kernel::Slot grad;
    InOut param;
    std::array<InOut, kCount> states;
    std::array<InOut, 2> powers;
    std::array<Stored, kCount + 1> data;  // the parameter, then its states
    Stored gradient;                      // dense
    int64_t stored = 0, capacity = 0, width = 0;
    std::optional<MergeRows> merge;  // where the gradient is sparse
  };

  static constexpr int64_t kChunk = 1024;  // elements that are converted at a time

  // body(pointers, n) over elements [begin, begin + n) as f32, whose gradients are at `g` where
  // they are the row of a table. At once where all are f32. What the body changes is stored.
  template <class Body>
  static void as_f32(const Param& param, int64_t begin, const float* g, int64_t n,
                     const Body& body) {
    alignas(64) std::array<std::array<float, kChunk>, kCount + 2> buffers;
    const int64_t most = param.in_f32() ? n : kChunk;
    for (int64_t done = 0; done < n; done += most) {
      const int64_t m = std::min(most, n - done);
      Pointers at{
          .p = param.data[0].load(begin + done, m, buffers[0].data()),
          .g = g ? g + done : param.gradient.load(begin + done, m, buffers[kCount + 1].data()),
          .s = {}};
      for (size_t k = 0; k < kCount; ++k)
        at.s[k] = param.data[k + 1].load(begin + done, m, buffers[k + 1].data());
      body(at, m);
      for (size_t k = 0; k <= kCount; ++k) param.data[k].store(begin + done, m, buffers[k].data());
    }
  }

  static void update(const Param& param, int64_t begin, const float* g, int64_t n) {
    as_f32(param, begin, g, n, [&](const Pointers& at, int64_t m) {
      vectorized(
          [=, step = param.step, decay = param.decay] { Elements::update(step, decay, at, m); });
    });
  }

  void update_rows(const kernel::Run& r, const Param& param) {
    const kernel::SparseRows rows = r.rows(param.grad, param.capacity);
    param.merge->for_each(
        r, rows,
        [&](int, int64_t id, const float* g) { update(param, id * param.width, g, param.width); },
        [&](int64_t id) {
          // The ends of a row: short ones lie in one or two cache lines.
          for (const Stored& table : param.data) {
            const char* row = static_cast<const char*>(table.data) +
                              static_cast<size_t>(id * param.width) * size_of(table.dtype);
            __builtin_prefetch(row, 1);
            __builtin_prefetch(row + static_cast<size_t>(param.width) * size_of(table.dtype) - 1,
                               1);
          }
        });
  }

  using Squares = typename Elements::Squares;

  void measure() {
    blocks_.for_each([&](size_t index, const Block& b) {
      const Param& param = params_[b.array];
      const auto measure = param.rule.measure(param.args);
      squares_[index] = {0, 0};
      as_f32(param, b.begin, nullptr, b.end - b.begin, [&](const Pointers& at, int64_t n) {
        Squares more;
        vectorized([=, decay = param.decay, out = &more] {
          *out = Elements::measure(measure, decay, at, n);
        });
        squares_[index].first += more.first;
        squares_[index].second += more.second;
      });
    });
    for (Param& param : params_) param.args.norm_param = param.args.norm = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      optim::StepArgs& args = params_[blocks_[b].array].args;
      args.norm_param += squares_[b].first;
      args.norm += squares_[b].second;
    }
    for (Param& param : params_) {
      param.args.norm_param = std::sqrt(param.args.norm_param);
      param.args.norm = std::sqrt(param.args.norm);
    }
  }

  std::vector<Param> params_;
  kernel::Slot lr_, scale_;
  Blocks blocks_;
  std::vector<Squares> squares_;
};

}  // namespace fleetx::ops
