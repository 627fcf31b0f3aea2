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
// An update is element-wise, so it works in whatever layout the parameter has. With a sparse
// gradient only the rows that it names are touched, each once with the sum of its gradients (lazy
// mode).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/blocks.h"
#include "fleetx/ops/lib/sparse_rows.h"
#include "fleetx/optimizers/lib/rule.h"

namespace fleetx::ops {

// A registrar with the slots and attributes that the declaration asks for, without a kernel.
ir::OpRegistrar optimizer_op(const optim::OptimizerDef& def);
// Element i of a list attribute with one value per parameter, or `fallback` where it is empty.
double per_parameter(const kernel::Prepare& p, std::string_view attr, size_t i, double fallback);

struct Decay {
  float scale, l1, l2;
  float operator()(float g, float p) const {
    return scale * g + l2 * p + ((p > 0 ? l1 : 0.0f) - (p < 0 ? l1 : 0.0f));
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
      update(param.step, param.decay, param.at(b.begin), b.end - b.begin);
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
  using Step = decltype(std::declval<const Rule&>().step(optim::StepArgs{}));
  using States = std::make_index_sequence<kCount>;

  struct Pointers {
    float* p;
    const float* g;
    std::array<float*, kCount> s;
  };

  struct InOut {
    kernel::Slot in, out;
    // Where the plan had to convert a state between layouts, output and input are not one memory.
    float* updated(const kernel::Run& r, int64_t n) const {
      if (r.raw(in) != r.raw(out)) std::copy_n(r.in<float>(in), n, r.out<float>(out));
      return r.out<float>(out);
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
        return InOut{p.input(name, i, wanted), p.output(str(name, "_out"), i, wanted)};
      };
      param = bind_state("param", layout);
      grad = p.input("grad", i, layout);
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
      data.p = param.updated(r, stored);
      data.g = merge ? nullptr : r.in<float>(grad);
      for (size_t k = 0; k < kCount; ++k) data.s[k] = states[k].updated(r, stored);
      decay.scale = scale;
      args.lr = lr * lr_factor;
      if constexpr (kPowers) {
        args.beta1_pow = *powers[0].updated(r, 1);
        args.beta2_pow = *powers[1].updated(r, 1);
      }
    }

    Pointers at(int64_t offset, const float* gradient = nullptr) const {
      Pointers out = data;
      out.p += offset;
      out.g = gradient ? gradient : data.g + offset;
      for (float*& s : out.s) s += offset;
      return out;
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
    Pointers data{};
    int64_t stored = 0, capacity = 0, width = 0;
    std::optional<MergeRows> merge;  // where the gradient is sparse
  };

  static void update(const Step& step, const Decay& decay, const Pointers& at, int64_t n) {
    vectorized([=] { update_elements(step, decay, at, n, States{}); });
  }

  // By value: as locals the coefficients stay in registers, a reference might alias the stores.
  template <size_t... K>
  static void update_elements(const Step step, const Decay decay, const Pointers at, int64_t n,
                              std::index_sequence<K...>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) step(at.p[i], decay(at.g[i], at.p[i]), at.s[K][i]...);
  }

  void update_rows(const kernel::Run& r, const Param& param) {
    const kernel::SparseRows rows = r.rows(param.grad, param.capacity);
    param.merge->for_each(
        r, rows,
        [&](int, int64_t id, const float* g) {
          update(param.step, param.decay, param.at(id * param.width, g), param.width);
        },
        [&](int64_t id) {
          // The ends of a row: short ones lie in one or two cache lines.
          const auto fetch = [&](const float* table) {
            __builtin_prefetch(table + id * param.width, 1);
            __builtin_prefetch(table + (id + 1) * param.width - 1, 1);
          };
          fetch(param.data.p);
          for (const float* state : param.data.s) fetch(state);
        });
  }

  using Squares = std::pair<double, double>;

  void measure() {
    blocks_.for_each([&](size_t index, const Block& b) {
      const Param& param = params_[b.array];
      const auto measure = param.rule.measure(param.args);
      vectorized(
          [=, decay = param.decay, at = param.at(b.begin), n = b.end - b.begin,
           out = &squares_[index]] { *out = measure_elements(measure, decay, at, n, States{}); });
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

  template <class Measure, size_t... K>
  static Squares measure_elements(const Measure measure, const Decay decay, const Pointers at,
                                  int64_t n, std::index_sequence<K...>) {
    double a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t i = 0; i < n; ++i) {
      const double x = at.p[i];
      const double y = measure(at.p[i], decay(at.g[i], at.p[i]), at.s[K][i]...);
      a += x * x;
      b += y * y;
    }
    return {a, b};
  }

  std::vector<Param> params_;
  kernel::Slot lr_, scale_;
  Blocks blocks_;
  std::vector<Squares> squares_;
};

}  // namespace fleetx::ops
