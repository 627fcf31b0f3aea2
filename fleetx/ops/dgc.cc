// dgc: gradients of which only the largest travel; the others are kept and added up until they are
// large (Lin et al. 2018, Deep Gradient Compression). For each parameter
//
//   g = clipped(grad) + l2 * param + l1 * sign(param)      of this rank
//   u = mu * u + g;  v = v + u                             nesterov: v = v + g + mu * u
//   out = mean over the ranks of the k elements of v of largest magnitude; 0 elsewhere
//   u = v = 0 at the places that were sent
//
// k = n * (1 - s), at least 1; s is sparsity[i], i = (step - rampup_begin_step) * size of the list
// / rampup_step, the last one after that. The optimizer applies `out` as it is. Before
// rampup_begin_step: g = clipped(mean of grad over the ranks) + decay, u = mu * u + g, out = u
// (nesterov: g + mu * u), v stays: momentum, whose velocity is u.
//
// clipped: the norm of g is at most max_norm[i]; a rank's own gradient may have sqrt(ranks) times
// that, because the mean of independent ones is that much shorter. 0: not clipped.
//
// Sent are pairs of value and place, or, where that is shorter, all elements with zeros in between.
// All ranks add in the same order: same bits everywhere. Each element has the same place on all
// ranks only where they keep parameters in the same layouts; that is checked in every step.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "fleetx/kernel/group.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/blocks.h"
#include "fleetx/ops/lib/largest.h"
#include "fleetx/ops/lib/optimizer.h"
#include "fleetx/ops/lib/ranks.h"
#include "fleetx/ops/lib/strided_copy.h"

namespace fleetx::ops {
namespace {

constexpr std::array<const char*, 4> kLists{"param", "grad", "u", "v"};

int64_t sent_elements(int64_t n, double sparsity) {
  return std::clamp<int64_t>(std::llround(static_cast<double>(n) * (1 - sparsity)), 1, n);
}

// Bytes that a rank sends: of pairs it sends its own to all others, of a dense vector 2 (ranks-1) /
// ranks.
bool pairs_are_shorter(int64_t n, int64_t k, int64_t ranks) { return k * ranks < n; }

void infer(ir::Infer& c) {
  const size_t n = c.count("param");
  for (const char* slot : kLists)
    c.check(c.count(slot) == n, "has ", n, " parameters, but ", c.count(slot), " of ", slot);
  for (const char* slot : {"out", "u_out", "v_out"})
    c.check(c.out_count(slot) == n, "has ", n, " parameters, but ", c.out_count(slot), " of ",
            slot);
  for (size_t i = 0; i < n; ++i) {
    for (const char* slot : kLists) {
      const ir::TensorType& x = c.in(slot, i);
      c.check(x.dtype == f32 && x.kind == ir::VarKind::kDense, c.show(slot, i),
              "; must be dense and f32");
      c.check(x.shape == c.in("param", i).shape, c.show(slot, i), ", but ", c.show("param", i));
    }
    c.check(c.by_example() || c.in("param", i).shape.numel() < kMostElements, c.show("param", i),
            "; has too many elements");
    c.out("out", i) = c.out("u_out", i) = c.out("v_out", i) = c.in("param", i);
  }
  c.check(c.in("step").dtype == i64 && c.in("step").shape.numel() == 1, c.show("step"),
          "; expected i64[1]");
  for (const char* list : {"l1", "l2", "max_norm"}) {
    const auto values = c.attr<ir::Floats>(list);
    c.check(values.empty() || values.size() == n, list, " has ", values.size(), " values for ", n,
            " parameters");
  }
  const auto sparsity = c.attr<ir::Floats>("sparsity");
  c.check(!sparsity.empty(), "sparsity is empty");
  for (const double s : sparsity)
    c.check(s >= 0 && s < 1, "sparsity has the value ", s, "; must be in [0, 1)");
  c.check(c.attr<int64_t>("rampup_step") >= 1, "rampup_step is ", c.attr<int64_t>("rampup_step"),
          "; must be at least 1");
  check_ranks(c);
}

// With the last sparsity of the list, with which most steps run.
ir::Cost cost(const ir::Infer& c) {
  ir::Cost cost;
  const double sparsity = c.attr<ir::Floats>("sparsity").back();
  cost.communication = {ir::CommKind::kAllGather, c.attr<std::string>("group"), 0};
  for (size_t i = 0; i < c.count("param"); ++i) {
    const int64_t n = c.in("param", i).shape.numel();
    cost.flops += 8 * static_cast<double>(n);
    cost.bytes += 8 * ir::bytes_of(c.in("param", i));
    cost.communication.bytes += 8 * static_cast<double>(sent_elements(n, sparsity));
  }
  return cost;
}

class Dgc final : public kernel::Kernel {
 public:
  explicit Dgc(kernel::Prepare& p)
      : group_(group_of_ranks(p)),
        ranks_(p.attr<int64_t>("ranks")),
        mu_(static_cast<float>(p.attr<double>("mu"))),
        nesterov_(p.attr<bool>("nesterov")),
        begin_(p.attr<int64_t>("rampup_begin_step")),
        rampup_(p.attr<int64_t>("rampup_step")),
        step_(p.input("step")),
        sample_(p.scratch(kLargestScratch)) {
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < p.count("param"); ++i) {
      params_.emplace_back(p, i);
      lengths.push_back(params_.back().n);
      mark_ = mix(mark_, stable_hash(str(p.in("param", i).shape, p.in("param", i).layout)));
    }
    blocks_ = Blocks(lengths);
    squares_.resize(blocks_.size());
    sums_.resize(params_.size());
    size_t room = 0;
    for (const double sparsity : p.attr<ir::Floats>("sparsity")) {
      stages_.push_back(make_stage(sparsity));
      room = std::max(room, stages_.back().bytes);
    }
    own_ = p.scratch(room);
    all_ = p.scratch(room * static_cast<size_t>(ranks_));
  }

  void bind(const comm::Groups& groups) override { group_.bind(groups); }
  std::string_view implementation() const override { return group_.backend(); }

  void run(const kernel::Run& r) override {
    for (Param& param : params_) param.bind(r);
    const int64_t step = *r.in<int64_t>(step_);
    if (step < begin_) return momentum(r);
    const auto count = static_cast<int64_t>(stages_.size());
    const int64_t index = step - begin_ >= rampup_ ? count - 1 : (step - begin_) * count / rampup_;
    const Stage& stage = stages_[static_cast<size_t>(index)];
    clip(std::sqrt(static_cast<double>(ranks_)));
    accumulate();
    for (size_t i = 0; i < params_.size(); ++i) take(r, params_[i], stage.parts[i]);
    exchange(r, stage.bytes);
    for (size_t i = 0; i < params_.size(); ++i) combine(r, params_[i], stage, i);
  }

 private:
  struct Param {
    Param(kernel::Prepare& p, size_t i)
        : l1(static_cast<float>(per_parameter(p, "l1", i, 0.0))),
          l2(static_cast<float>(per_parameter(p, "l2", i, 0.0))),
          max_norm(per_parameter(p, "max_norm", i, 0.0)) {
      const Layout layout = p.in("param", i).layout;
      n = p.in("param", i).stored();
      in_param = p.input_as_is("param", i);
      in_grad = p.input("grad", i, layout);
      in_u = p.input("u", i, layout);
      in_v = p.input("v", i, layout);
      to_out = p.output("out", i, layout);
      to_u = p.output("u_out", i, layout);
      to_v = p.output("v_out", i, layout);
    }

    void bind(const kernel::Run& r) {
      param = r.in<float>(in_param);
      grad = r.in<float>(in_grad);
      out = r.out<float>(to_out);
      u = updated(r, in_u, to_u);
      v = updated(r, in_v, to_v);
      factor = 1;
    }
    // Where the plan had to convert a state between layouts, input and output are not one memory.
    float* updated(const kernel::Run& r, kernel::Slot in, kernel::Slot to) const {
      if (r.raw(in) != r.raw(to)) std::copy_n(r.in<float>(in), n, r.out<float>(to));
      return r.out<float>(to);
    }

    float l1, l2;
    double max_norm;
    int64_t n = 0;
    kernel::Slot in_param, in_grad, in_u, in_v, to_out, to_u, to_v;
    // Of this step.
    const float *param = nullptr, *grad = nullptr;
    float *out = nullptr, *u = nullptr, *v = nullptr;
    float factor = 1;  // of clipping
  };

  // What is sent of a parameter, and where it stands in a message: values, then their places.
  struct Part {
    int64_t k;
    bool pairs;
    size_t offset;
  };
  // Of one value of `sparsity`. A message begins with the mark of the layouts.
  struct Stage {
    std::vector<Part> parts;
    size_t bytes = sizeof(uint64_t);
  };

  Stage make_stage(double sparsity) const {
    Stage stage;
    for (const Param& param : params_) {
      const int64_t k = sent_elements(param.n, sparsity);
      const bool pairs = pairs_are_shorter(param.n, k, ranks_);
      stage.parts.push_back({k, pairs, stage.bytes});
      if (pairs) stage.bytes += static_cast<size_t>(k) * 8;
    }
    return stage;
  }

  template <class Body>
  void for_each_block(const Body& body) const {
    blocks_.for_each([&](size_t index, const Block& b) { body(index, params_[b.array], b); });
  }

  void clip(double times) {
    const auto clips = [](const Param& param) { return param.max_norm > 0; };
    if (std::none_of(params_.begin(), params_.end(), clips)) return;
    for_each_block([&](size_t index, const Param& param, const Block& b) {
      squares_[index] = clips(param) ? sum_of_squares(param.grad + b.begin, b.end - b.begin) : 0;
    });
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (size_t b = 0; b < blocks_.size(); ++b) sums_[blocks_[b].array] += squares_[b];
    for (size_t i = 0; i < params_.size(); ++i)
      if (clips(params_[i]))
        params_[i].factor =
            static_cast<float>(std::min(1.0, times * params_[i].max_norm / std::sqrt(sums_[i])));
  }

  // Before compression begins.
  void momentum(const kernel::Run& r) {
    exchange(r, sizeof(uint64_t));
    for (Param& param : params_) {
      if (param.out != param.grad) std::copy_n(param.grad, param.n, param.out);
      if (ranks_ > 1) group_->all_reduce(param.out, param.n, f32, comm::ReduceOp::kAverage);
      param.grad = param.out;
    }
    clip(1);
    for_each_block([&](size_t, const Param& param, const Block& b) {
      vectorized([=, mu = mu_, nesterov = nesterov_,
                  decay = Decay{param.factor, param.l1, param.l2}, p = param.param + b.begin,
                  u = param.u + b.begin, out = param.out + b.begin, n = b.end - b.begin] {
        const float of_g = nesterov ? 1.0f : 0.0f, of_u = nesterov ? mu : 1.0f;
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          const float g = decay(out[i], p[i]), velocity = mu * u[i] + g;
          u[i] = velocity;
          out[i] = of_g * g + of_u * velocity;
        }
      });
    });
  }

  void accumulate() {
    for_each_block([&](size_t, const Param& param, const Block& b) {
      vectorized([=, mu = mu_, nesterov = nesterov_,
                  decay = Decay{param.factor, param.l1, param.l2}, p = param.param + b.begin,
                  grad = param.grad + b.begin, u = param.u + b.begin, v = param.v + b.begin,
                  n = b.end - b.begin] {
        const float of_g = nesterov ? 1.0f : 0.0f, of_u = nesterov ? mu : 1.0f;
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) {
          const float g = decay(grad[i], p[i]), velocity = mu * u[i] + g;
          u[i] = velocity;
          v[i] += of_g * g + of_u * velocity;
        }
      });
    });
  }

  // The largest elements leave u and v: for the message, or for `out` with zeros in between.
  void take(const kernel::Run& r, const Param& param, const Part& part) const {
    Cut cut{.bits = 0, .place = static_cast<uint32_t>(param.n - 1)};  // all
    auto* places = reinterpret_cast<uint32_t*>(param.out);  // nobody needs the gradient any more
    if (part.k < param.n)
      cut = find_largest(param.v, param.n, part.k, places, r.out<uint32_t>(sample_));
    if (!part.pairs) return take_dense(param, cut);
    char* message = r.out<char>(own_) + part.offset;
    std::memcpy(message + part.k * 4, places, static_cast<size_t>(part.k) * 4);
    for (int64_t i = 0; i < part.k; ++i) {
      const uint32_t place = places[i];
      std::memcpy(message + i * 4, &param.v[place], 4);
      param.u[place] = param.v[place] = 0;
    }
  }

  static void take_dense(const Param& param, const Cut& cut) {
    parallel_for(param.n, 1 << 14, [&](int64_t begin, int64_t end) {
      vectorized([=, u = param.u, v = param.v, out = param.out] {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) {
          const bool taken = cut.takes(v[i], static_cast<uint32_t>(i));
          out[i] = taken ? v[i] : 0.0f;
          v[i] = taken ? 0.0f : v[i];
          u[i] = taken ? 0.0f : u[i];
        }
      });
    });
  }

  // Every rank gets the messages of all.
  void exchange(const kernel::Run& r, size_t bytes) const {
    char *own = r.out<char>(own_), *all = r.out<char>(all_);
    std::memcpy(own, &mark_, sizeof mark_);
    if (ranks_ == 1)
      std::memcpy(all, own, bytes);
    else
      group_->all_gather(own, all, static_cast<int64_t>(bytes), u8);
    for (int64_t rank = 0; rank < ranks_; ++rank)
      check_arg(std::memcmp(all + static_cast<size_t>(rank) * bytes, &mark_, sizeof mark_) == 0,
                group_.op(), "rank ", rank, " of the group '", group_.name(), "' and rank ",
                group_.rank(),
                " keep these parameters in different layouts: start all of them with the same "
                "FLEETX_MAX_ISA, FLEETX_SKIP and program");
  }

  void combine(const kernel::Run& r, const Param& param, const Stage& stage, size_t index) const {
    const Part& part = stage.parts[index];
    if (!part.pairs) {
      if (ranks_ > 1) group_->all_reduce(param.out, param.n, f32, comm::ReduceOp::kAverage);
      return;
    }
    zero_fill(param.out, static_cast<size_t>(param.n) * sizeof(float));
    const float share = 1.0f / static_cast<float>(ranks_);
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      const char* message =
          r.in<char>(all_) + static_cast<size_t>(rank) * stage.bytes + part.offset;
      for (int64_t i = 0; i < part.k; ++i) {
        float value;
        uint32_t place;
        std::memcpy(&value, message + i * 4, 4);
        std::memcpy(&place, message + (part.k + i) * 4, 4);
        param.out[place] += share * value;
      }
    }
  }

  kernel::Group group_;
  int64_t ranks_;
  float mu_;
  bool nesterov_;
  int64_t begin_, rampup_;
  kernel::Slot step_, sample_, own_, all_;
  std::vector<Param> params_;
  uint64_t mark_ = 0;
  Blocks blocks_;
  std::vector<double> squares_, sums_;
  std::vector<Stage> stages_;
};

FLEETX_OP(dgc)
    .input("param", ir::Arity::kMany)
    .input("grad", ir::Arity::kMany)
    .input("u", ir::Arity::kMany)
    .input("v", ir::Arity::kMany)
    .input("step")
    .output("out", ir::Arity::kMany)
    .output("u_out", ir::Arity::kMany)
    .output("v_out", ir::Arity::kMany)
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .attr("mu", 0.9)
    .attr("nesterov", false)
    .attr("l1", ir::Floats{})
    .attr("l2", ir::Floats{})
    .attr("max_norm", ir::Floats{})
    .attr("rampup_begin_step", 0)
    .attr("rampup_step", 1)
    .attr("sparsity", ir::Floats{0.999})
    .infer(infer)
    .cost(cost)
    .kernel<Dgc>()
    .in_place("out", "grad")
    .in_place("u_out", "u")
    .in_place("v_out", "v")
    .collective()
    .uniform("out");

}  // namespace
}  // namespace fleetx::ops
