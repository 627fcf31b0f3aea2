#include "tests/support/op_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "fleetx/autograd/backward.h"
#include "fleetx/base/cpu.h"
#include "fleetx/ir/builder.h"
#include "fleetx/ir/infer.h"
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

  // Whether infer accepts the inputs of these slots in another dtype.
  bool accepts(const std::set<std::string>& slots, DType dtype) const {
    // A variable may stand in two slots: each place gets a name of its own.
    ir::Op op = main_.ops().back();
    std::map<std::string, ir::TensorType> types;
    for (size_t s = 0; s < op.inputs.size(); ++s)
      for (std::string& name : op.inputs[s]) {
        ir::TensorType type = main_.var(name).type;
        if (type.dtype == f32 && slots.contains(op.def->inputs[s].name)) type.dtype = dtype;
        name = str("in", types.size());
        types[name] = type;
      }
    try {
      ir::infer_types(op, [&](const std::string& n) -> const ir::TensorType& { return types[n]; });
      return true;
    } catch (const Error& e) {
      if (e.kind() != Error::Kind::kInvalidArgument) throw;
      return false;
    }
  }

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

// ---- 16-bit floats: <op>.<label>.bf16 and .f16 for every case that infer accepts in them ----

Tensor converted(const Tensor& x, DType dtype) {
  Tensor out(dtype, x.shape());
  with_type(x.dtype(), [&](auto from_zero) {
    with_type(dtype, [&](auto to_zero) {
      using From = decltype(from_zero);
      using To = decltype(to_zero);
      for (size_t i = 0; i < x.data<From>().size(); ++i)
        out.data<To>()[i] = static_cast<To>(static_cast<float>(x.data<From>()[i]));
    });
  });
  return out;
}
bool is_half(DType dtype) { return dtype == bf16 || dtype == f16; }
Tensor as_f32(const Tensor& x) { return is_half(x.dtype()) ? converted(x, f32) : x; }

// The inputs of these slots in `dtype`; with `back`, only rounded to it.
OpCase in_half(OpCase c, const std::set<std::string>& slots, DType dtype, bool back) {
  for (OpInput& input : c.inputs)
    for (Tensor& tensor : input.tensors)
      if (slots.contains(input.slot) && tensor.dtype() == f32) {
        tensor = converted(tensor, dtype);
        if (back) tensor = converted(tensor, f32);
      }
  return c;
}

std::set<std::string> float_slots(const OpCase& c) {
  std::set<std::string> slots;
  for (const OpInput& input : c.inputs)
    if (!input.is_state && input.rows.empty() && !input.tensors.empty() &&
        input.tensors[0].dtype() == f32)
      slots.insert(input.slot);
  return slots;
}

// The largest set that the op takes in this dtype.
std::set<std::string> half_slots(const std::string& op, const OpCase& c, DType dtype) {
  const std::set<std::string> all = float_slots(c);
  const std::vector<std::string> list(all.begin(), all.end());
  const CaseProgram program(op, c);
  std::set<std::string> best;
  for (unsigned bits = 1; bits < 1u << list.size(); ++bits) {
    std::set<std::string> some;
    for (size_t i = 0; i < list.size(); ++i)
      if (bits >> i & 1u) some.insert(list[i]);
    if (some.size() > best.size() && program.accepts(some, dtype)) best = some;
  }
  return best;
}

// The gradients of all float inputs, for given weights of the outputs.
Tensors gradients_of(const std::string& op, const OpCase& c, const Tensors& weights) {
  CaseProgram program(op, c);
  std::vector<Var> inputs, wanted;
  for (const auto& [var, tensor] : program.differentiable()) inputs.push_back(var);
  for (const Var& g : program.differentiate(inputs, weights))
    if (g.defined()) wanted.push_back(g);
  if (wanted.empty()) return {};
  program.fetch(wanted);
  return program.run();
}

// Results are rounded once, and what backward reads of them with them.
template <class T>
void test_half(const std::string& op, const OpCase& c, const std::set<std::string>& slots,
               double rounding = DTypeOf<T>::value == bf16 ? 1.6e-2 : 2e-3) {
  constexpr DType dtype = DTypeOf<T>::value;
  const double tolerance = std::max(c.tolerance, rounding);
  const double grad_tolerance = dtype == bf16 ? 4e-2 : 5e-3;
  const OpCase half = in_half(c, slots, dtype, false), rounded = in_half(c, slots, dtype, true);
  const Tensors got = run_op(op, half), exact = run_op(op, rounded);
  const CaseProgram program(op, half);
  Tensors weights(got.size()), half_weights(got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string& name = program.outputs()[i].name();
    // What is too large for 16 bits is infinite.
    const Tensor want = is_half(got[i].dtype()) ? converted(exact[i], got[i].dtype()) : exact[i];
    expect_close(as_f32(got[i]), as_f32(want), tolerance, name);
    if (!is_float(got[i].dtype()) || !program.carries_gradient(i)) continue;
    half_weights[i] = converted(random(got[i].shape(), 1000 + i, 0.5f, 1.5f), got[i].dtype());
    weights[i] = converted(half_weights[i], f32);
  }
  const ir::OpDef* def = ir::find_op(op);
  if (!c.gradient || def->grad == nullptr) return;
  const Tensors d = gradients_of(op, half, half_weights), want = gradients_of(op, rounded, weights);
  ASSERT_EQ(d.size(), want.size());
  for (size_t i = 0; i < d.size(); ++i)
    expect_close(as_f32(d[i]), want[i], grad_tolerance, str("gradient ", i));
}

void test_bf16(const std::string& op, const OpCase& c) {
  test_half<BFloat16>(op, c, half_slots(op, c, bf16));
}
void test_f16(const std::string& op, const OpCase& c) {
  test_half<Half>(op, c, half_slots(op, c, f16));
}
// x alone, beside parameters in f32, which a CPU that multiplies bf16 rounds for its products.
void test_mixed(const std::string& op, const OpCase& c) {
  test_half<BFloat16>(op, c, {"x"}, cpu::best_isa() >= cpu::Isa::kAvx512Bf16 ? 4e-2 : 1.6e-2);
}

bool takes_half(const std::string& op, const OpCase& c) {
  return !float_slots(c).empty() && !half_slots(op, c, bf16).empty();
}
bool takes_mixed(const std::string& op, const OpCase& c) {
  return float_slots(c).contains("x") && half_slots(op, c, bf16).size() > 1 &&
         CaseProgram(op, c).accepts({"x"}, bf16);
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
                              Kind{"round_trip", test_round_trip}, Kind{"bf16", test_bf16},
                              Kind{"f16", test_f16}, Kind{"mixed", test_mixed}}) {
        if (kind.body == test_gradient && !has_gradient) continue;
        if (kind.body == test_forward && !c.reference) continue;
        if ((kind.body == test_bf16 || kind.body == test_f16) && !(def && takes_half(op, c)))
          continue;
        if (kind.body == test_mixed && !(def && takes_mixed(op, c))) continue;
        ::testing::RegisterTest(
            op.c_str(), (c.label + "." + kind.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
            [&c, op = op, kind]() -> ::testing::Test* { return new CaseTest(kind.body, op, c); });
      }
    }
  }
}

int time_op_cases(const std::string& filter) {
  std::printf("%-56s %12s %10s %10s\n", "case", "best us", "GFLOP/s", "GB/s");
  for (const auto& [op, cases] : op_cases(true)) {
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
