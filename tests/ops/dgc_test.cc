#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/alone.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

struct Options {
  double mu = 0.9;
  bool nesterov = false;
  double l1 = 0, l2 = 0, max_norm = 0;
  int64_t begin = 0, rampup = 1;
  ir::Floats sparsity = {0.9};

  ir::Attrs attrs(const std::string& group, int ranks) const {
    return {{"group", group},
            {"ranks", ranks},
            {"mu", mu},
            {"nesterov", nesterov},
            {"l1", ir::Floats{l1, 0}},
            {"l2", ir::Floats{l2, 0}},
            {"max_norm", ir::Floats{max_norm, 0}},
            {"rampup_begin_step", begin},
            {"rampup_step", rampup},
            {"sparsity", sparsity}};
  }
};

// One parameter on one rank, in double.
struct State {
  std::vector<double> p, g, u, v;
};
using Vector = std::vector<double>;

Vector vector_of(const Tensor& t) { return {t.data<float>().begin(), t.data<float>().end()}; }
Tensor tensor_of(const Vector& v, const Shape& shape) {
  Tensor t(f32, shape);
  for (size_t i = 0; i < v.size(); ++i) t.data<float>()[i] = static_cast<float>(v[i]);
  return t;
}

void clip(Vector& g, double limit) {
  double squares = 0;
  for (const double x : g) squares += x * x;
  if (limit <= 0 || squares <= limit * limit) return;
  for (double& x : g) x *= limit / std::sqrt(squares);
}

void decay(Vector& g, const Vector& p, const Options& o, bool decays) {
  for (size_t i = 0; i < g.size() && decays; ++i)
    g[i] += o.l2 * p[i] + o.l1 * (p[i] > 0 ? 1 : p[i] < 0 ? -1 : 0);
}

// `out` of all ranks; changes u and v.
Vector reference(std::vector<State>& ranks, const Options& o, int64_t step, bool first) {
  const auto n = ranks.front().g.size();
  const auto count = static_cast<double>(ranks.size());
  Vector mean(n);
  if (step < o.begin) {
    for (const State& s : ranks)
      for (size_t i = 0; i < n; ++i) mean[i] += s.g[i] / count;
    clip(mean, first ? o.max_norm : 0);
    decay(mean, ranks.front().p, o, first);
    Vector out(n);
    for (State& s : ranks)
      for (size_t i = 0; i < n; ++i) {
        s.u[i] = o.mu * s.u[i] + mean[i];
        out[i] = o.nesterov ? mean[i] + o.mu * s.u[i] : s.u[i];
      }
    return out;
  }
  const auto size = static_cast<int64_t>(o.sparsity.size());
  const double sparsity =
      o.sparsity[static_cast<size_t>(std::min(size - 1, (step - o.begin) * size / o.rampup))];
  const auto k =
      static_cast<size_t>(std::max(1LL, std::llround(static_cast<double>(n) * (1 - sparsity))));
  for (State& s : ranks) {
    Vector g = s.g;
    clip(g, first ? o.max_norm * std::sqrt(count) : 0);
    decay(g, s.p, o, first);
    for (size_t i = 0; i < n; ++i) {
      s.u[i] = o.mu * s.u[i] + g[i];
      s.v[i] += o.nesterov ? g[i] + o.mu * s.u[i] : s.u[i];
    }
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return std::abs(s.v[a]) > std::abs(s.v[b]); });
    for (size_t j = 0; j < k; ++j) {
      mean[order[j]] += s.v[order[j]] / count;
      s.u[order[j]] = s.v[order[j]] = 0;
    }
  }
  return mean;
}

constexpr int64_t kRows = 30, kColumns = 50;
const Shape kShape{kRows, kColumns}, kSecond{700};

OpCase make(const std::string& label, const Options& o, int64_t step) {
  return {.label = label,
          .inputs = {{"param", Tensors{random(kShape, 1), random(kSecond, 2)}},
                     {"grad", Tensors{random(kShape, 3), random(kSecond, 4)}},
                     OpInput("u", Tensors{random(kShape, 5), random(kSecond, 6)}).state(),
                     OpInput("v", Tensors{random(kShape, 7), random(kSecond, 8)}).state(),
                     {"step", Tensor::of<int64_t>({1}, {step})}},
          .attrs = o.attrs("alone", 1),
          .outputs = {{"out", 2}},
          .updates = {{"u_out", "u"}, {"v_out", "v"}},
          .reference = [o, step](const Tensors& in) -> Tensors {
            Tensors out(6);
            for (size_t i = 0; i < 2; ++i) {
              std::vector<State> one{{vector_of(in[i]), vector_of(in[2 + i]), vector_of(in[4 + i]),
                                      vector_of(in[6 + i])}};
              out[i] = tensor_of(reference(one, o, step, i == 0), in[i].shape());
              out[2 + i] = tensor_of(one[0].u, in[i].shape());
              out[4 + i] = tensor_of(one[0].v, in[i].shape());
            }
            return out;
          },
          .tolerance = 1e-5,
          .gradient = false};
}

const AddCases cases("dgc", [](Cases& c) {
  c.add(make("plain", {}, 3));
  c.add(make("nesterov", {.nesterov = true}, 0));
  c.add(make("decay", {.l1 = 0.1, .l2 = 0.3}, 0));
  c.add(make("clip", {.max_norm = 3}, 0));
  c.add(make("all", {.sparsity = {0.0}}, 0));
  c.add(make("before", {.l1 = 0.1, .l2 = 0.3, .max_norm = 3, .begin = 5}, 4));
  c.add(make("before_nesterov", {.nesterov = true, .begin = 5}, 4));
  const Options rampup{.begin = 5, .rampup = 10, .sparsity = {0.5, 0.75, 0.9}};
  for (const int64_t step : {5, 8, 9, 12, 15, 1000})
    c.add(make(str("rampup_", step), rampup, step));
});

// ---- several ranks ----

// u and v of all steps so far stay; gradients are new in every step.
void expect_like_reference(const Options& o, int workers, int64_t steps) {
  const auto salt = [](int what, int rank, int64_t step) {
    return static_cast<uint64_t>(what * 10000 + rank * 1000 + step);
  };
  std::vector<std::vector<Tensor>> outs(static_cast<size_t>(workers));
  std::vector<Tensor> last_u(static_cast<size_t>(workers)), last_v(static_cast<size_t>(workers));
  const std::string text = R"(program
data p : f32[30,50]
data g : f32[30,50]
data step : i64[1]
state u : f32[30,50] per_rank(dp, average)
state v : f32[30,50] per_rank(dp, average)
var out : f32[30,50]

forward:
)";
  run_workers(workers, [&](int rank, const SharedGroups& groups) {
    ir::Program main = ir::parse_text(text);
    ir::Attrs attrs = o.attrs("dp", workers);
    for (const char* list : {"l1", "l2", "max_norm"})
      attrs.at(list) = ir::Floats{attrs.at(list).as<ir::Floats>().front()};
    ir::Rewriter(main).append(
        {.type = "dgc",
         .inputs =
             {{"param", {"p"}}, {"grad", {"g"}}, {"u", {"u"}}, {"v", {"v"}}, {"step", {"step"}}},
         .outputs = {{"out", {"out"}}, {"u_out", {"u"}}, {"v_out", {"v"}}},
         .attrs = attrs});
    runtime::Scope scope;
    scope.set("u", filled(kShape, 0));
    scope.set("v", filled(kShape, 0));
    runtime::Executor exe({.plan = {.groups = groups}});
    const auto r = static_cast<size_t>(rank);
    for (int64_t step = 0; step < steps; ++step)
      outs[r].push_back(exe.run(main, scope,
                                {{"p", random(kShape, salt(1, 0, step))},
                                 {"g", random(kShape, salt(2, rank, step))},
                                 {"step", Tensor::of<int64_t>({1}, {step})}},
                                {"out"})[0]);
    last_u[r] = scope.get("u");
    last_v[r] = scope.get("v");
  });
  std::vector<State> ranks(static_cast<size_t>(workers));
  for (State& s : ranks) s.u = s.v = Vector(static_cast<size_t>(kRows * kColumns));
  for (int64_t step = 0; step < steps; ++step) {
    for (int rank = 0; rank < workers; ++rank) {
      ranks[static_cast<size_t>(rank)].p = vector_of(random(kShape, salt(1, 0, step)));
      ranks[static_cast<size_t>(rank)].g = vector_of(random(kShape, salt(2, rank, step)));
    }
    const Tensor want = tensor_of(reference(ranks, o, step, true), kShape);
    for (size_t r = 0; r < ranks.size(); ++r)
      expect_close(outs[r][static_cast<size_t>(step)], want, 1e-5, str("step ", step));
    for (size_t r = 1; r < ranks.size(); ++r)
      expect_close(outs[r][static_cast<size_t>(step)], outs[0][static_cast<size_t>(step)], 0,
                   str("rank ", r));
  }
  for (size_t r = 0; r < ranks.size(); ++r) {
    expect_close(last_u[r], tensor_of(ranks[r].u, kShape), 1e-5, "u");
    expect_close(last_v[r], tensor_of(ranks[r].v, kShape), 1e-5, "v");
  }
}

TEST(Dgc, IsTheMeanOfWhatRanksSend) {
  expect_like_reference({.l2 = 0.1, .max_norm = 5}, 3, 4);             // pairs
  expect_like_reference({.nesterov = true, .sparsity = {0.5}}, 3, 4);  // all, with zeros
  expect_like_reference({.max_norm = 2, .begin = 3, .rampup = 4, .sparsity = {0.25, 0.75, 0.99}}, 2,
                        9);
}

TEST(Dgc, RefusesWhatMakesNoSense) {
  const auto run = [](const char* attr, const ir::Attr& value) {
    OpCase c = make("bad", {}, 0);
    c.attrs.at(attr) = value;
    return error_of([&] { run_op("dgc", c); });
  };
  EXPECT_TRUE(contains(run("sparsity", ir::Floats{1.0}), "sparsity has the value 1"));
  EXPECT_TRUE(contains(run("sparsity", ir::Floats{}), "sparsity is empty"));
  EXPECT_TRUE(contains(run("rampup_step", 0), "rampup_step is 0"));
  EXPECT_TRUE(contains(run("l2", ir::Floats{1, 2, 3}), "l2 has 3 values for 2 parameters"));
  EXPECT_TRUE(contains(run("ranks", 2), "the program is for 2 ranks"));
}

}  // namespace
}  // namespace fleetx::testing
