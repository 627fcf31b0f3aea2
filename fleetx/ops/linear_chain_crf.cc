// linear_chain_crf: what it costs that each sequence has its labels, under a conditional random
// field. Sequence b is the rows starts[b] .. starts[b] + lengths[b] - 1 of x [N, D], the weights of
// the D tags in that place; transition [D + 2, D] holds weights of the first tag, of the last tag,
// and of tag j after tag i (row 2 + i). With s(y) the sum of all these weights along the tags y:
//   cost[b] = log(sum over all y of exp(s(y))) - s(label)        [B, 1]; 0 for an empty sequence
// The sum is made from row to row (alpha), each row divided by its own sum so that nothing
// overflows. Gradient: shares of the tags (and of pairs of tags) among all y, by alpha and the same
// from the other end (beta), minus 1 for those of the label. Both are computed again: only the
// inputs are kept.
#include <cmath>
#include <limits>

#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/math.h"
#include "fleetx/ops/lib/recurrence.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  check_random_field(c);
  c.out("cost") = {f32, {c.in("starts").shape[0], 1}};
}

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  for (const char* slot : {"x", "transition"})
    if (g.needs(slot)) dests.emplace_back(str("d", slot), g.dx(slot));
  const ir::Results d = g.op("linear_chain_crf_grad",
                             {{"x", g.in("x")},
                              {"transition", g.in("transition")},
                              {"label", g.in("label")},
                              {"starts", g.in("starts")},
                              {"lengths", g.in("lengths")},
                              {"dcost", g.dout("cost")}},
                             {}, dests);
  for (const char* slot : {"x", "transition"})
    if (g.needs(slot)) g.set(slot, d[str("d", slot)]);
}

void infer_grad(ir::Infer& c) {
  check_random_field(c);
  for (const char* slot : {"x", "transition"})
    if (c.out_count(str("d", slot)) > 0) c.out(str("d", slot)) = c.in(slot);
}

ir::Cost cost(const ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  return {.flops = 2.0 * static_cast<double>(x[0] * x[1] * (x[1] + 8))};
}

// Sequences are given out in this many parts, whatever the number of threads: sums over sequences
// have one order.
constexpr int kParts = 8;

// The field of one run: exp of the transitions, and sums along sequences.
class Field {
 public:
  explicit Field(kernel::Prepare& p)
      : sequences_(p, p.in("x").shape[0], false),
        tags_(p.in("x").shape[1]),
        rows_(p.in("x").shape[0]),
        x_(p.input("x")),
        transition_(p.input("transition")),
        label_(p.input("label")),
        exp_(scratch(p, tags_ * tags_ + 1)),
        alpha_(scratch(p, rows_ * tags_)),
        powers_(scratch(p, rows_ * tags_)),
        where_(ir::describe(p.op())) {}

  static kernel::Slot scratch(kernel::Prepare& p, int64_t floats) {
    return p.scratch(static_cast<size_t>(floats) * sizeof(float));
  }

  // body(part, sequences, first place, last place): all parts, in parallel.
  template <class Body>
  void each(const kernel::Run& r, const Body& body) const {
    const Sequences::Sorted s = sequences_.sorted(r);
    const float* pairs = transition(r) + 2 * tags_;
    const int64_t n = tags_ * tags_;
    const float shift = *std::max_element(pairs, pairs + n);
    auto* exp = r.out<float>(exp_);
    exp[n] = shift;
    vectorized([=] {
      for (int64_t i = 0; i < n; ++i) exp[i] = math::exp(pairs[i] - shift);
    });
    const auto* label = r.in<int64_t>(label_);
    for (int64_t i = 0; i < sequences_.count(); ++i)
      for (int64_t t = 0; t < s.length(i); ++t)
        check_arg(label[s.row(i, t)] >= 0 && label[s.row(i, t)] < tags_, where_, "label ",
                  label[s.row(i, t)], " in row ", s.row(i, t), " is not below ", tags_);
    parallel_parts(kParts, kParts, [&](int, int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        body(part, s, sequences_.count() * part / kParts, sequences_.count() * (part + 1) / kParts);
    });
  }

  // Fills alpha and powers of the sequence at this place; the log of the sum over all y.
  double forward(const kernel::Run& r, const Sequences::Sorted& s, int64_t place) const {
    const int64_t tags = tags_, length = s.length(place);
    const float *first = transition(r), *last = first + tags, *exp = r.out<float>(exp_);
    const double largest = exp[tags * tags];
    double log = 0;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t row = s.row(place, t) * tags;
      const float* x = r.in<float>(x_) + row;
      float *a = r.out<float>(alpha_) + row, *power = r.out<float>(powers_) + row;
      float top = -std::numeric_limits<float>::infinity();
      for (int64_t i = 0; i < tags; ++i) top = std::max(top, x[i] + (t == 0 ? first[i] : 0.0f));
      vectorized([=] {
        for (int64_t i = 0; i < tags; ++i)
          power[i] = math::exp(x[i] + (t == 0 ? first[i] : 0.0f) - top);
      });
      if (t == 0)
        std::copy_n(power, tags, a);
      else
        follow(a - tags, exp, power, a);
      log += static_cast<double>(top) + std::log(normalize(a)) + (t == 0 ? 0.0 : largest);
    }
    const float* a = r.out<float>(alpha_) + s.row(place, length - 1) * tags;
    const float top = *std::max_element(last, last + tags);
    double sum = 0;
    for (int64_t i = 0; i < tags; ++i)
      sum += static_cast<double>(a[i]) * static_cast<double>(math::exp(last[i] - top));
    return log + static_cast<double>(top) + std::log(sum);
  }

  double score(const kernel::Run& r, const Sequences::Sorted& s, int64_t place) const {
    const float *w = transition(r), *x = r.in<float>(x_);
    const auto* label = r.in<int64_t>(label_) + s.row(place, 0);
    const int64_t length = s.length(place);
    double sum =
        static_cast<double>(w[label[0]]) + static_cast<double>(w[tags_ + label[length - 1]]);
    for (int64_t t = 0; t < length; ++t) {
      sum += static_cast<double>(x[s.row(place, t) * tags_ + label[t]]);
      if (t > 0) sum += static_cast<double>(w[(2 + label[t - 1]) * tags_ + label[t]]);
    }
    return sum;
  }

  // v /= its sum, which is given back.
  double normalize(float* v) const {
    double sum = 0;
    for (int64_t i = 0; i < tags_; ++i) sum += static_cast<double>(v[i]);
    const auto factor = static_cast<float>(1.0 / sum);
    for (int64_t i = 0; i < tags_; ++i) v[i] *= factor;
    return sum;
  }

  const float* transition(const kernel::Run& r) const { return r.in<float>(transition_); }
  const float* exp(const kernel::Run& r) const { return r.out<float>(exp_); }
  const float* alpha(const kernel::Run& r) const { return r.out<float>(alpha_); }
  const float* powers(const kernel::Run& r) const { return r.out<float>(powers_); }
  const int64_t* label(const kernel::Run& r) const { return r.in<int64_t>(label_); }
  int64_t tags() const { return tags_; }
  int64_t rows() const { return rows_; }

 private:
  // to[i] = power[i] * the sum over j of a[j] * exp[j][i]
  void follow(const float* a, const float* exp, const float* power, float* to) const {
    const int64_t tags = tags_;
    std::fill_n(to, tags, 0.0f);
    vectorized([=] {
      for (int64_t j = 0; j < tags; ++j)
        for (int64_t i = 0; i < tags; ++i) to[i] += a[j] * exp[j * tags + i];
      for (int64_t i = 0; i < tags; ++i) to[i] *= power[i];
    });
  }

  Sequences sequences_;
  int64_t tags_, rows_;
  kernel::Slot x_, transition_, label_;
  kernel::Slot exp_, alpha_, powers_;  // of pairs, and the largest weight of a pair; of every row
  std::string where_;
};

class Crf final : public kernel::Kernel {
 public:
  explicit Crf(kernel::Prepare& p) : field_(p), cost_(p.output("cost")) {}

  void run(const kernel::Run& r) override {
    auto* cost = r.out<float>(cost_);
    field_.each(r, [&](int64_t, const Sequences::Sorted& s, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        cost[s.sequence(i)] =
            s.length(i) == 0 ? 0.0f
                             : static_cast<float>(field_.forward(r, s, i) - field_.score(r, s, i));
    });
  }

 private:
  Field field_;
  kernel::Slot cost_;
};

class CrfGrad final : public kernel::Kernel {
 public:
  explicit CrfGrad(kernel::Prepare& p)
      : field_(p),
        dcost_(p.input("dcost")),
        dtransition_(p.output("dtransition")),
        parts_(Field::scratch(p, kParts * part())),
        betas_(Field::scratch(p, kParts * 3 * field_.tags())) {
    dx_ = p.has_out("dx") ? p.output("dx") : Field::scratch(p, field_.rows() * field_.tags());
  }

  void run(const kernel::Run& r) override {
    auto *parts = r.out<float>(parts_), *betas = r.out<float>(betas_), *dx = r.out<float>(dx_);
    field_.each(r, [&](int64_t number, const Sequences::Sorted& s, int64_t begin, int64_t end) {
      if (number == 0) s.clear_others(dx, field_.tags());
      float* dtransition = parts + number * part();
      std::fill_n(dtransition, part(), 0.0f);
      for (int64_t i = begin; i < end; ++i)
        if (s.length(i) > 0) sequence(r, s, i, dtransition, betas + number * 3 * field_.tags());
    });
    if (dtransition_) sum_columns(parts, kParts, part(), part(), r.out<float>(dtransition_));
  }

 private:
  int64_t part() const { return (field_.tags() + 2) * field_.tags(); }

  void sequence(const kernel::Run& r, const Sequences::Sorted& s, int64_t place, float* dtransition,
                float* beta) const {
    (void)field_.forward(r, s, place);
    const int64_t tags = field_.tags(), length = s.length(place), begin = s.row(place, 0);
    const float d = r.in<float>(dcost_)[s.sequence(place)], *exp = field_.exp(r);
    const float* last = field_.transition(r) + tags;
    const int64_t* label = field_.label(r) + begin;
    float *next = beta + tags, *share = beta + 2 * tags;
    const float top = *std::max_element(last, last + tags);
    for (int64_t i = 0; i < tags; ++i) beta[i] = math::exp(last[i] - top);
    for (int64_t t = length - 1; t >= 0; --t) {
      const float* a = field_.alpha(r) + (begin + t) * tags;
      float* dx = r.out<float>(dx_) + (begin + t) * tags;
      for (int64_t i = 0; i < tags; ++i) share[i] = a[i] * beta[i];
      field_.normalize(share);
      for (int64_t i = 0; i < tags; ++i) {
        const float own = d * (share[i] - (label[t] == i ? 1.0f : 0.0f));
        dx[i] = own;
        if (t == 0) dtransition[i] += own;
        if (t == length - 1) dtransition[tags + i] += own;
      }
      if (t == 0) continue;
      const float* power = field_.powers(r) + (begin + t) * tags;
      for (int64_t i = 0; i < tags; ++i) share[i] = power[i] * beta[i];
      pairs(a - tags, exp, share, label[t - 1], label[t], d, dtransition + 2 * tags, next);
      field_.normalize(next);
      std::copy_n(next, tags, beta);
    }
  }

  // Of tag i after tag j: before[j] * exp[j][i] * behind[i], divided by their sum; and beta of the
  // place before.
  void pairs(const float* before, const float* exp, const float* behind, int64_t from, int64_t to,
             float d, float* dpairs, float* beta) const {
    const int64_t tags = field_.tags();
    double all = 0;
    for (int64_t j = 0; j < tags; ++j) {
      float sum = 0;
      for (int64_t i = 0; i < tags; ++i) sum += exp[j * tags + i] * behind[i];
      beta[j] = sum;
      all += static_cast<double>(before[j]) * static_cast<double>(sum);
    }
    const auto factor = static_cast<float>(static_cast<double>(d) / all);
    vectorized([=] {
      for (int64_t j = 0; j < tags; ++j)
        for (int64_t i = 0; i < tags; ++i)
          dpairs[j * tags + i] += factor * before[j] * exp[j * tags + i] * behind[i];
    });
    dpairs[from * tags + to] -= d;
  }

  Field field_;
  kernel::Slot dcost_, dtransition_, dx_;
  kernel::Slot parts_, betas_;  // of each part: its sum of dtransition; beta, the next, shares
};

FLEETX_OP(linear_chain_crf)
    .input("x")
    .input("transition")
    .input("label")
    .input("starts")
    .input("lengths")
    .output("cost")
    .infer(infer)
    .grad(grad)
    .cost(cost)
    .kernel<Crf>();

FLEETX_OP(linear_chain_crf_grad)
    .input("x")
    .input("transition")
    .input("label")
    .input("starts")
    .input("lengths")
    .input("dcost")
    .output("dx", ir::Arity::kOptional)
    .output("dtransition", ir::Arity::kOptional)
    .infer(infer_grad)
    .cost(cost)
    .kernel<CrfGrad>();

}  // namespace
}  // namespace fleetx::ops
