#include "tests/support/op_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "fleetx/autograd/backward.h"
#include "fleetx/ir/builder.h"
#include "fleetx/ir/proto.h"
#include "fleetx/ir/text.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/op_case.h"
#include "tests/support/op_registry.h"

namespace fleetx::testing {
namespace {

using ir::Var;

// A program with just the op of one case: inputs are fed (or set in the scope, for state), outputs
// fetched.
class CaseProgram {
 public:
  CaseProgram(const std::string& op, const OpCase& c) : case_(c), b_(main_, startup_) {
    std::vector<ir::Arg> args;
    for (const OpInput& input : c.inputs) {
      std::vector<Var> vars;
      for (const Tensor& tensor : input.tensors) vars.push_back(declare(input, tensor));
      for (const SparseRows& rows : input.rows) vars.push_back(declare(input, rows));
      args.emplace_back(input.slot, vars);
    }
    std::vector<ir::Dest> dests;
    for (const auto& [slot, count] : c.outputs) {
      ir::Names names;
      for (int i = 0; i < count; ++i) names.push_back(slot + std::to_string(i));
      dests.emplace_back(slot, names);
    }
    for (const auto& [slot, input_slot] : c.updates) {
      ir::Names names;
      for (const auto& [name, s] : slot_of_)
        if (s == input_slot) names.push_back(name);
      dests.emplace_back(slot, names);
    }
    const ir::Results results = b_.op(op, args, c.attrs, dests);
    for (const ir::SlotDef& slot : ir::op_def(op).outputs)
      for (const Var& out : results.all(slot.name)) {
        outputs_.push_back(out);
        carries_gradient_.push_back(std::find(c.constants.begin(), c.constants.end(), slot.name) ==
                                    c.constants.end());
        fetch_.push_back(out.name());
      }
    reset();
  }

  ir::Program& main() { return main_; }
  const std::vector<Var>& outputs() const { return outputs_; }
  bool carries_gradient(size_t output) const {
    return carries_gradient_[output] && !outputs_[output].info().persistable;
  }

  Tensors run() {
    reset();
    return exe_.run(main_, scope_, feeds_, fetch_);
  }

  runtime::Plan& plan() { return exe_.plan(main_, scope_, feeds_, fetch_); }
  runtime::Executor& executor() { return exe_; }

  // Appends the backward part for sum(out * weight) over all float outputs, with given weights.
  std::vector<Var> differentiate(const std::vector<Var>& inputs, const Tensors& weights) {
    std::vector<Var> targets, seeds;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!weights[i].defined()) continue;
      const std::string name = "weight_of_" + std::to_string(i);
      targets.push_back(outputs_[i]);
      seeds.push_back(b_.data(name, weights[i].dtype(), outputs_[i].shape()));
      feeds_.emplace_back(name, weights[i]);
    }
    return autograd::gradients(targets, inputs, seeds);
  }

  std::vector<std::pair<Var, Tensor>> differentiable() const {
    std::vector<std::pair<Var, Tensor>> out;
    for (const auto& [var, tensor] : inputs_) out.emplace_back(var, tensor);
    return out;
  }
  void fetch(const std::vector<Var>& vars) {
    fetch_.clear();
    for (const Var& v : vars) fetch_.push_back(v.name());
  }

 private:
  std::string name_for(const OpInput& input) {
    slot_of_.emplace_back(input.slot + std::to_string(slot_of_.size()), input.slot);
    return slot_of_.back().first;
  }
  // Sparse rows cannot be fed: they are made as training makes them.
  Var declare(const OpInput& input, const SparseRows& rows) {
    const std::string name = name_for(input);
    const auto feed = [&](const char* suffix, const Tensor& tensor) {
      feeds_.emplace_back(name + suffix, tensor);
      return b_.data(name + suffix, tensor.dtype(), tensor.shape());
    };
    return b_.op("embedding_grad",
                 {{"ids", feed(".ids", rows.ids)}, {"dout", feed(".values", rows.values)}},
                 {{"sparse", true},
                  {"padding_idx", rows.padding},
                  {"shape", Shape{rows.table, rows.values.shape()[1]}}},
                 {{"dw", name}});
  }
  Var declare(const OpInput& input, const Tensor& tensor) {
    const std::string name = name_for(input);
    if (input.is_state) {
      states_.emplace_back(name, tensor);
      return b_.state(name, tensor.dtype(), tensor.shape());
    }
    feeds_.emplace_back(name, tensor);
    Shape shape = tensor.shape();
    for (const auto& [slot, dim] : case_.unknown)
      if (slot == input.slot) shape[dim] = -1;
    Var v = b_.data(name, tensor.dtype(), shape);
    v.stop_gradient(false);
    if (input.differentiable && is_float(tensor.dtype())) inputs_.emplace_back(v, tensor);
    return v;
  }
  void reset() {
    for (const auto& [name, tensor] : states_) scope_.set(name, tensor);
  }

  const OpCase& case_;
  ir::Program main_, startup_;
  ir::Builder b_;
  runtime::Scope scope_;
  runtime::Executor exe_;
  runtime::Feeds feeds_;
  std::vector<std::pair<std::string, Tensor>> states_;
  std::vector<std::pair<std::string, std::string>> slot_of_;
  std::vector<std::pair<Var, Tensor>> inputs_;
  std::vector<Var> outputs_;
  std::vector<bool> carries_gradient_;
  ir::Names fetch_;
};

void test_forward(const std::string& op, const OpCase& c) {
  CaseProgram program(op, c);
  const Tensors got = program.run();
  Tensors in;
  for (const OpInput& input : c.inputs) {
    in.insert(in.end(), input.tensors.begin(), input.tensors.end());
    for (const SparseRows& rows : input.rows) in.push_back(rows.dense());
  }
  const Tensors want = c.reference(in);
  ASSERT_LE(want.size(), got.size()) << "the reference gives more outputs than the op";
  for (size_t i = 0; i < want.size(); ++i)
    if (want[i].defined()) expect_close(got[i], want[i], c.tolerance, program.outputs()[i].name());
  const Tensors again = program.run();
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(std::equal(static_cast<char*>(got[i].raw()),
                           static_cast<char*>(got[i].raw()) + got[i].bytes(),
                           static_cast<char*>(again[i].raw())))
        << "output " << i << " has other bits in a second run";
}

double weighted_sum(const Tensors& outputs, const Tensors& weights) {
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!weights[i].defined()) continue;
    const auto y = outputs[i].data<float>(), w = weights[i].data<float>();
    for (size_t k = 0; k < y.size(); ++k)
      sum += static_cast<double>(y[k]) * static_cast<double>(w[k]);
  }
  return sum;
}

// Central differences on up to this many elements of each input: enough to hit every region of an
// op.
constexpr int64_t kProbes = 24;

void test_gradient(const std::string& op, const OpCase& c) {
  CaseProgram forward(op, c), backward(op, c);
  const Tensors outputs = forward.run();
  Tensors weights(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].dtype() == DType::kF32 && forward.carries_gradient(i))
      weights[i] = random(outputs[i].shape(), 1000 + i, 0.5f, 1.5f);

  std::vector<Var> inputs;
  for (const auto& [var, tensor] : backward.differentiable()) inputs.push_back(var);
  const std::vector<Var> grads = backward.differentiate(inputs, weights);
  std::vector<Var> wanted;
  for (const Var& g : grads)
    if (g.defined()) wanted.push_back(g);
  ASSERT_FALSE(wanted.empty()) << "no input has a gradient";
  backward.fetch(wanted);
  const Tensors analytic = backward.run();

  size_t next = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Tensor& got = analytic[next++];
    const Tensor tensor = forward.differentiable()[i].second;  // the memory that is fed
    if (tensor.dtype() != DType::kF32) continue;
    const auto x = tensor.data<float>();
    const auto n = static_cast<int64_t>(x.size());
    for (int64_t probe = 0; probe < std::min(kProbes, n); ++probe) {
      const auto k = static_cast<size_t>(n <= kProbes ? probe : (probe * 7919 + 13) % n);
      const float old = x[k];
      const auto step = static_cast<float>(c.epsilon);
      x[k] = old + step;
      const double above = weighted_sum(forward.run(), weights);
      x[k] = old - step;
      const double below = weighted_sum(forward.run(), weights);
      x[k] = old;
      const double numeric = (above - below) / (2.0 * c.epsilon);
      const double value = got.data<float>()[k];
      EXPECT_LE(std::abs(value - numeric), c.grad_tolerance * (1.0 + std::abs(numeric)))
          << "gradient of " << inputs[i].name() << " at element " << k << ": got " << value
          << ", differences give " << numeric;
    }
  }
}

void test_round_trip(const std::string& op, const OpCase& c) {
  CaseProgram program(op, c);
  const std::string text = ir::to_text(program.main());
  EXPECT_EQ(ir::to_text(ir::parse_text(text)), text);
  EXPECT_EQ(ir::to_text(ir::parse_proto(ir::to_proto(program.main()))), text);
}

class CaseTest final : public ::testing::Test {
 public:
  CaseTest(void (*body)(const std::string&, const OpCase&), std::string op, const OpCase& c)
      : body_(body), op_(std::move(op)), case_(c) {}
  void TestBody() override { body_(op_, case_); }

 private:
  void (*body_)(const std::string&, const OpCase&);
  std::string op_;
  const OpCase& case_;
};

}  // namespace

Tensors run_op(const std::string& op, const OpCase& c) { return CaseProgram(op, c).run(); }

void register_op_tests() {
  struct Kind {
    const char* name;
    void (*body)(const std::string&, const OpCase&);
  };
  for (const auto& [op, cases] : op_cases()) {
    for (const OpCase& c : cases) {
      if (c.perf) continue;
      const ir::OpDef* def = ir::find_op(op);
      const bool has_gradient = c.gradient && (def == nullptr || def->grad != nullptr);
      for (const Kind kind : {Kind{"forward", test_forward}, Kind{"gradient", test_gradient},
                              Kind{"round_trip", test_round_trip}}) {
        if (kind.body == test_gradient && !has_gradient) continue;
        if (kind.body == test_forward && !c.reference) continue;
        ::testing::RegisterTest(
            op.c_str(), (c.label + "." + kind.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
            [&c, op = op, kind]() -> ::testing::Test* { return new CaseTest(kind.body, op, c); });
      }
    }
  }
}

int time_op_cases(const std::string& filter) {
  std::printf("%-56s %12s %10s %10s\n", "case", "best us", "GFLOP/s", "GB/s");
  for (const auto& [op, cases] : op_cases()) {
    for (const OpCase& c : cases) {
      const std::string name = op + "." + c.label;
      if (name.find(filter) == std::string::npos) continue;
      CaseProgram program(op, c);
      runtime::Plan& plan = program.plan();
      double best = 1e30, spent = 0;
      for (int i = 0; i < 200 && (i < 3 || spent < 0.5); ++i) {
        const auto start = std::chrono::steady_clock::now();
        program.executor().run(plan);
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        best = std::min(best, seconds);
        spent += seconds;
      }
      double bytes = 0;
      for (const runtime::Step& step : plan.steps()) bytes += step.cost.bytes;
      std::printf("%-56s %12.2f %10.2f %10.2f\n", name.c_str(), best * 1e6,
                  plan.flops() / best / 1e9, bytes / best / 1e9);
    }
  }
  return 0;
}

}  // namespace fleetx::testing
