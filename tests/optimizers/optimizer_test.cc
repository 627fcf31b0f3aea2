// Every optimizer op, from the specs that the test files of the ops give.
#include "fleetx/ops/lib/optimizer.h"

#include <gtest/gtest.h>

#include <set>

#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/optimizers/optimizer_case.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

std::vector<OptimizerSpec>& specs() {
  static std::vector<OptimizerSpec> list;
  return list;
}

struct Options {
  std::vector<double> lr_factors, l1, l2;
  double scale = 1.0;

  double at(const std::vector<double>& list, size_t i, double fallback) const {
    return list.empty() ? fallback : list[i];
  }
  ir::Attrs attrs(const OptimizerSpec& spec) const {
    ir::Attrs out = spec.attrs;
    out.insert_or_assign("lr_factors", lr_factors);
    out.insert_or_assign("l1", l1);
    out.insert_or_assign("l2", l2);
    return out;
  }
};

constexpr double kLr = 0.05;
// Every test process makes all cases: larger tensors, which are only timed, are left zero, and so
// take neither time nor memory.
constexpr int64_t kLarge = 1 << 20;

std::vector<double> doubles(const Tensor& t, int64_t begin, int64_t n) {
  const auto from = t.data<float>();
  return {from.begin() + begin, from.begin() + begin + n};
}

void store(const std::vector<double>& from, const Tensor& to, int64_t begin) {
  for (size_t i = 0; i < from.size(); ++i)
    to.data<float>()[static_cast<size_t>(begin) + i] = static_cast<float>(from[i]);
}

// The state of one parameter in the reference.
struct Model {
  Tensor param;
  Tensors states;
  double beta1_pow = 1, beta2_pow = 1;

  // `grad` for the elements from `begin` on.
  void step(const OptimizerSpec& spec, const Options& o, size_t i, const std::vector<double>& grad,
            int64_t begin) {
    const auto n = static_cast<int64_t>(grad.size());
    Update u;
    u.p = doubles(param, begin, n);
    for (const double g : grad) {
      const double p = u.p[u.g.size()];
      u.g.push_back(o.scale * g + o.at(o.l2, i, 0) * p +
                    o.at(o.l1, i, 0) * static_cast<double>((p > 0) - (p < 0)));
    }
    for (const Tensor& s : states) u.s.push_back(doubles(s, begin, n));
    u.lr = kLr * o.at(o.lr_factors, i, 1);
    u.beta1_pow = beta1_pow;
    u.beta2_pow = beta2_pow;
    spec.rule(u);
    store(u.p, param, begin);
    for (size_t k = 0; k < states.size(); ++k) store(u.s[k], states[k], begin);
  }
  void end_step(const OptimizerSpec& spec) {
    beta1_pow *= spec.beta1;
    beta2_pow *= spec.beta2;
  }
};

enum class Gradients { kDense, kSparse };

OpCase make_case(const OptimizerSpec& spec, const std::string& label,
                 const std::vector<Shape>& shapes, const Options& o,
                 Gradients gradients = Gradients::kDense) {
  OpCase c;
  c.label = label;
  c.attrs = o.attrs(spec);
  c.gradient = false;
  const auto add = [&](const std::string& slot, bool updated, float low,
                       const std::vector<Shape>& of) {
    Tensors list;
    for (size_t i = 0; i < of.size(); ++i)
      list.push_back(of[i].numel() > kLarge ? Tensor(f32, of[i])
                                            : random(of[i], 100 * c.inputs.size() + i, low, 1.0f));
    OpInput input(slot, list);
    if (updated) {
      input.state();
      c.updates.emplace_back(slot + "_out", slot);
    }
    c.inputs.push_back(input);
  };
  add("param", true, -1.0f, shapes);
  std::vector<std::set<int64_t>> touched;  // rows, by parameter
  if (gradients == Gradients::kDense) {
    add("grad", false, -1.0f, shapes);
  } else {
    OpInput grads("grad");
    for (const Shape& shape : shapes) {
      grads.sparse(random_rows(2 * shape[0] / 3, shape, 50 + touched.size()));
      const auto ids = grads.rows.back().ids.data<int64_t>();
      touched.emplace_back(ids.begin(), ids.end());
    }
    c.inputs.push_back(grads);
  }
  for (const std::string& state : spec.states) add(state, true, 0.1f, shapes);
  if (spec.beta1 > 0) {
    const std::vector<Shape> one(shapes.size(), Shape{1});
    add("beta1_pow", true, 0.5f, one);
    add("beta2_pow", true, 0.5f, one);
  }
  c.inputs.emplace_back("lr", filled({1}, static_cast<float>(kLr)));
  c.inputs.emplace_back("scale", filled({1}, static_cast<float>(o.scale)));
  const size_t n = shapes.size(), states = spec.states.size();
  c.reference = [=](const Tensors& in) -> Tensors {
    Tensors out(n * (1 + states));
    for (size_t i = 0; i < n; ++i) {
      Model m{in[i].clone(), {}};
      for (size_t k = 0; k < states; ++k) m.states.push_back(in[(2 + k) * n + i].clone());
      if (spec.beta1 > 0) {
        m.beta1_pow = in[(2 + states) * n + i].item<float>();
        m.beta2_pow = in[(3 + states) * n + i].item<float>();
      }
      const Tensor& grad = in[n + i];
      if (touched.empty()) {
        m.step(spec, o, i, doubles(grad, 0, grad.numel()), 0);
      } else {
        const int64_t width = grad.shape()[1];
        for (const int64_t id : touched[i])
          m.step(spec, o, i, doubles(grad, id * width, width), id * width);
      }
      out[i] = m.param;
      for (size_t k = 0; k < states; ++k) out[(1 + k) * n + i] = m.states[k];
    }
    return out;
  };
  return c;
}

// The op with which embeddings make sparse gradients.
ir::Results rows_of(ir::Builder& b, const ir::Var& ids, const ir::Var& values, const Shape& table,
                    const std::string& name) {
  return b.op("embedding_grad", {{"ids", ids}, {"dout", values}},
              {{"sparse", true}, {"shape", table}}, {{"dw", name}});
}

Tensor convert(const Tensor& x, DType to) {
  if (x.dtype() == to) return x.clone();
  Tensor out(to, x.shape());
  with_type(x.dtype(), [&](auto from_zero) {
    with_type(to, [&](auto to_zero) {
      for (size_t i = 0; i < static_cast<size_t>(x.numel()); ++i)
        out.data<decltype(to_zero)>()[i] =
            static_cast<decltype(to_zero)>(static_cast<float>(x.data<decltype(from_zero)>()[i]));
    });
  });
  return out;
}

// A program that only updates parameters from gradients that are fed.
class Optimizing {
 public:
  enum class Grouping { kOneOp, kOpPerParameter };

  // `stored`: the dtype of parameters and dense gradients, and of states, which cannot be f16.
  Optimizing(const OptimizerSpec& spec, std::vector<Shape> shapes, const Options& o,
             int64_t sparse_rows = 0, Grouping grouping = Grouping::kOneOp, DType stored = f32)
      : spec_(spec),
        stored_(stored),
        options_(o),
        shapes_(std::move(shapes)),
        rows_(sparse_rows),
        b_(main_, startup_) {
    lr_ = b_.state("lr", f32, {1});
    scope.set("lr", filled({1}, static_cast<float>(kLr)));
    scale_ = b_.data("scale", f32, {1});
    for (size_t i = 0; i < shapes_.size(); ++i) declare(i);
    std::vector<size_t> all;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      if (grouping == Grouping::kOpPerParameter) append({i});
      all.push_back(i);
    }
    if (grouping == Grouping::kOneOp) append(all);
  }

  // Steps of the op and of the reference. Gradients differ from step to step.
  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      runtime::Feeds feeds{{"scale", filled({1}, static_cast<float>(options_.scale))}};
      for (size_t i = 0; i < shapes_.size(); ++i) {
        const auto salt = static_cast<uint64_t>(1000 + 10 * step) + i;
        if (rows_ == 0) {
          const Tensor g = convert(convert(random(shapes_[i], salt), stored_), f32);
          feeds.emplace_back(str("grad_", i), convert(g, stored_));
          models_[i].step(spec_, options_, i, doubles(g, 0, shapes_[i].numel()), 0);
        } else {
          feed_rows(i, salt, feeds);
        }
        models_[i].end_step(spec_);
      }
      exe_.run(main_, scope, feeds);
    }
  }

  void expect_like_reference(double tolerance) const {
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const auto expect = [&](const std::string& name, const Tensor& want) {
        expect_close(convert(scope.get(name), f32), want, tolerance, name);
      };
      expect(str("param_", i), models_[i].param);
      for (size_t k = 0; k < spec_.states.size(); ++k)
        expect(str(spec_.states[k], "_", i), models_[i].states[k]);
    }
  }
  std::vector<float> all_bits() const {
    std::vector<float> out;
    for (const std::string& name : scope.names()) {
      const Tensor t = scope.get(name);
      out.insert(out.end(), t.data<float>().begin(), t.data<float>().end());
    }
    return out;
  }

  runtime::Scope scope;

 private:
  ir::Var state(const std::string& name, const Tensor& value, DType dtype = f32) {
    scope.set(name, convert(value, dtype));
    return b_.state(name, dtype, value.shape());
  }

  void declare(size_t i) {
    Model m{convert(convert(random(shapes_[i], i), stored_), f32), {}};
    state(str("param_", i), m.param, stored_);
    for (size_t k = 0; k < spec_.states.size(); ++k) {
      m.states.emplace_back(f32, shapes_[i]);
      state(str(spec_.states[k], "_", i), m.states.back(), stored_ == f16 ? f32 : stored_);
    }
    m.beta1_pow = spec_.beta1;
    m.beta2_pow = spec_.beta2;
    if (spec_.beta1 > 0) {
      state(str("beta1_pow_", i), filled({1}, static_cast<float>(spec_.beta1)));
      state(str("beta2_pow_", i), filled({1}, static_cast<float>(spec_.beta2)));
    }
    if (rows_ == 0) {
      b_.data(str("grad_", i), stored_, shapes_[i]);
    } else {
      Shape values = shapes_[i];
      values[0] = rows_;
      rows_of(b_, b_.data(str("ids_", i), i64, {rows_}), b_.data(str("values_", i), f32, values),
              shapes_[i], str("grad_", i));
    }
    models_.push_back(std::move(m));
  }

  void append(const std::vector<size_t>& which) {
    std::vector<std::string> slots = {"param"};
    slots.insert(slots.end(), spec_.states.begin(), spec_.states.end());
    if (spec_.beta1 > 0) slots.insert(slots.end(), {"beta1_pow", "beta2_pow"});
    std::vector<ir::Arg> args;
    std::vector<ir::Dest> dests;
    const auto vars = [&](const std::string& slot) {
      std::vector<ir::Var> out;
      for (const size_t i : which) out.push_back(b_.var(str(slot, "_", i)));
      return out;
    };
    for (const std::string& slot : slots) {
      args.emplace_back(slot, vars(slot));
      ir::Names names;
      for (const ir::Var& v : vars(slot)) names.push_back(v.name());
      dests.emplace_back(slot + "_out", names);
    }
    args.emplace_back("grad", vars("grad"));
    args.emplace_back("lr", lr_);
    args.emplace_back("scale", scale_);
    Options o = options_;
    for (std::vector<double>* list : {&o.lr_factors, &o.l1, &o.l2}) {
      if (list->empty()) continue;
      std::vector<double> some;
      for (const size_t i : which) some.push_back((*list)[i]);
      *list = some;
    }
    b_.op(spec_.op, args, o.attrs(spec_), dests);
  }

  void feed_rows(size_t i, uint64_t salt, runtime::Feeds& feeds) {
    const int64_t width = shapes_[i].numel(1, shapes_[i].rank());
    Shape shape = shapes_[i];
    shape[0] = rows_;
    const Tensor ids = random_ints({rows_}, 0, shapes_[i][0], salt), values = random(shape, salt);
    feeds.emplace_back(str("ids_", i), ids);
    feeds.emplace_back(str("values_", i), values);
    std::map<int64_t, std::vector<double>> sums;
    for (int64_t k = 0; k < rows_; ++k) {
      auto& sum = sums[ids.data<int64_t>()[static_cast<size_t>(k)]];
      sum.resize(static_cast<size_t>(width));
      const auto row = doubles(values, k * width, width);
      for (size_t j = 0; j < row.size(); ++j) sum[j] += row[j];
    }
    ASSERT_LT(sums.size(), static_cast<size_t>(rows_)) << "the test needs ids that repeat";
    for (const auto& [id, sum] : sums) models_[i].step(spec_, options_, i, sum, id * width);
  }

  OptimizerSpec spec_;
  DType stored_;
  Options options_;
  std::vector<Shape> shapes_;
  int64_t rows_;
  ir::Program main_, startup_;
  ir::Builder b_;
  runtime::Executor exe_;
  ir::Var lr_, scale_;
  std::vector<Model> models_;
};

const Options kAll{{1.0, 0.5, 2.0}, {0.0, 0.01, 0.0}, {0.1, 0.0, 0.02}, 0.7};

class EveryOptimizer : public ::testing::TestWithParam<std::string> {
 protected:
  const OptimizerSpec& spec() const {
    for (const OptimizerSpec& s : specs())
      if (s.op == GetParam()) return s;
    throw std::logic_error("no test file gives a spec for " + GetParam());
  }
};

TEST_P(EveryOptimizer, FollowsTheReferenceOverSteps) {
  Optimizing o(spec(), {{7, 5}, {40000}, {3, 2, 2}}, kAll);
  o.run(5);
  o.expect_like_reference(5e-5);
}

TEST_P(EveryOptimizer, SparseGradientsTouchTheirRowsOnly) {
  if (!spec().sparse) GTEST_SKIP() << "dense only";
  Optimizing o(spec(), {{9, 5}, {10, 16}, {4, 1}}, kAll, 12);
  o.run(5);
  o.expect_like_reference(5e-5);
}

// Computed in f32, then rounded: one step is off by half a unit in the last place at most.
TEST_P(EveryOptimizer, StoresIn16Bits) {
  for (const auto& [dtype, unit] : {std::pair{bf16, 0x1p-8}, {f16, 0x1p-11}}) {
    Optimizing dense(spec(), {{7, 5}, {40000}, {3, 2, 2}}, kAll, 0, Optimizing::Grouping::kOneOp,
                     dtype);
    dense.run(1);
    dense.expect_like_reference(unit);
    if (!spec().sparse) continue;
    Optimizing rows(spec(), {{9, 5}, {10, 16}, {4, 1}}, kAll, 12, Optimizing::Grouping::kOneOp,
                    dtype);
    rows.run(1);
    rows.expect_like_reference(unit);
  }
}

TEST_P(EveryOptimizer, OneOpOrManyGiveTheSameBits) {
  const std::vector<Shape> shapes = {{30, 1000}, {17}, {50000}};
  Optimizing one(spec(), shapes, kAll),
      many(spec(), shapes, kAll, 0, Optimizing::Grouping::kOpPerParameter);
  one.run(3);
  many.run(3);
  EXPECT_EQ(one.all_bits(), many.all_bits());
}

TEST_P(EveryOptimizer, ThreadsDoNotChangeTheBits) {
  const int before = num_threads();
  std::vector<float> bits[2];
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    Optimizing o(spec(), {{300, 700}, {11}}, {});
    o.run(2);
    bits[threads / 2] = o.all_bits();
  }
  set_num_threads(before);
  EXPECT_EQ(bits[0], bits[1]);
}

TEST_P(EveryOptimizer, WorksInTheLayoutOfTheParameter) {
  const Layout blocked{{0, 1, 2, 3}, {{1, 16}, {0, 16}}};
  const Shape shape{20, 17, 3, 2};
  ASSERT_TRUE(blocked.has_padding(shape));
  Optimizing o(spec(), {shape}, {});
  o.scope.replace("param_0", o.scope.get("param_0").to(blocked));
  o.run(4);
  o.expect_like_reference(5e-5);
  ir::Names names = {"param_0"};
  for (const std::string& state : spec().states) names.push_back(state + "_0");
  for (const std::string& name : names) {
    const Tensor* t = o.scope.find(name);
    EXPECT_EQ(t->layout(), blocked) << name;
    // Exactly the padding is zero.
    const auto zeros = std::count(t->data<float>().begin(), t->data<float>().end(), 0.0f);
    EXPECT_EQ(zeros, blocked.stored(shape) - shape.numel()) << name;
  }
}

std::vector<std::string> all_optimizers() {
  std::vector<std::string> names;
  for (const optim::OptimizerDef* def : optim::optimizer_defs()) names.push_back(def->op);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Optimizer, EveryOptimizer, ::testing::ValuesIn(all_optimizers()),
                         [](const auto& info) { return info.param; });

TEST(Optimizer, OpsFollowFromTheDeclarations) {
  for (const optim::OptimizerDef* def : optim::optimizer_defs()) {
    const ir::OpDef& op = ir::op_def(def->op);
    EXPECT_TRUE(op.updates_parameters) << def->op;
    for (const optim::OptionDef& option : def->options) {
      if (!option.in_op()) continue;
      const ir::AttrDef* attr = op.find_attr(option.attr);
      ASSERT_NE(attr, nullptr) << def->op << " " << option.attr;
      EXPECT_EQ(attr->fallback, option.fallback) << def->op << " " << option.attr;
    }
  }
}

class Refuses : public ::testing::Test {
 protected:
  ir::Var state(const std::string& name, const Shape& shape) { return b.state(name, f32, shape); }
  void expect(std::initializer_list<std::string_view> parts, const std::vector<ir::Arg>& args,
              const ir::Attrs& attrs, const std::vector<ir::Dest>& dests,
              const std::string& op = "sgd") {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] { b.op(op, args, attrs, dests); });
  }
  ir::Program main, startup;
  ir::Builder b{main, startup};
};

TEST_F(Refuses, WhatDoesNotFitTogether) {
  const ir::Var p = state("p", {4, 3}), g = b.data("g", f32, {4, 3}), lr = state("lr", {1});
  const ir::Var bad = b.data("bad", f32, {3, 4}), wide = state("wide", {2});
  expect({"'bad' is f32[3,4]", "'p' is f32[4,3]"}, {{"param", p}, {"grad", bad}, {"lr", lr}}, {},
         {{"param_out", p}});
  expect({"lr must be f32[1]", "f32[2]"}, {{"param", p}, {"grad", g}, {"lr", wide}}, {},
         {{"param_out", p}});
  expect({"in place"}, {{"param", p}, {"grad", g}, {"lr", lr}}, {}, {{"param_out", "other"}});
  expect({"'l2'", "2 values for 1"}, {{"param", p}, {"grad", g}, {"lr", lr}},
         {{"l2", ir::Floats{0.1, 0.2}}}, {{"param_out", p}});
  expect({"'velocity'", "f32[4,3]", "f32[2]"},
         {{"param", p}, {"grad", g}, {"velocity", wide}, {"lr", lr}}, {},
         {{"param_out", p}, {"velocity_out", wide}}, "momentum");
}

TEST_F(Refuses, OptionsOutOfTheirRange) {
  const ir::Var p = state("p", {4}), g = b.data("g", f32, {4}), lr = state("lr", {1});
  const ir::Var squared = state("squared", {4}), linear = state("linear", {4});
  const auto ftrl = [&](const ir::Attrs& attrs, std::initializer_list<std::string_view> parts) {
    expect(parts, {{"param", p}, {"grad", g}, {"squared", squared}, {"linear", linear}, {"lr", lr}},
           attrs, {{"param_out", p}, {"squared_out", squared}, {"linear_out", linear}}, "ftrl");
  };
  ftrl({{"shrink_l1", -1.0}}, {"ftrl", "shrink_l1 must be at least 0, got -1"});
  ftrl({{"lr_power", 0.5}}, {"ftrl", "lr_power must be at most 0, got 0.5"});
}

TEST_F(Refuses, SparseGradientsWhereNormsAreNeeded) {
  const ir::Var p = state("p", {4, 3}), v = state("v", {4, 3}), lr = state("lr", {1});
  const ir::Var g =
      rows_of(b, b.data("ids", i64, {2}), b.data("values", f32, {2, 3}), p.shape(), "g");
  expect({"lars_momentum", "sparse"}, {{"param", p}, {"grad", g}, {"velocity", v}, {"lr", lr}}, {},
         {{"param_out", p}, {"velocity_out", v}}, "lars_momentum");
}

}  // namespace

AddOptimizer::AddOptimizer(const OptimizerSpec& spec) {
  specs().push_back(spec);
  const AddCases cases(spec.op, [spec](Cases& c) {
    c.add(make_case(spec, "one", {{5, 7}}, {}));
    c.add(make_case(spec, "list", {{3, 5}, {40001}, {1}}, kAll));
    if (spec.sparse)
      c.add(make_case(spec, "sparse", {{9, 5}, {40, 16}, {6, 1}}, kAll, Gradients::kSparse));
    if (!c.timed) return;
    OpCase large = make_case(spec, "large", {{1 << 24}}, {});
    large.perf = true;
    c.add(std::move(large));
  });
}

}  // namespace fleetx::testing
