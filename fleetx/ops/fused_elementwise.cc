// fused_elementwise: a chain of element-wise ops done block by block, so that what lies between
// them stays in the first-level cache. xs and outs all have one shape and dtype, a float; of 16
// bits, what lies between them is f32.
//
// Step i of the chain runs ops[i], an op type with OpDef::element_wise (binary ones with equal
// shapes only; `sum` with dense inputs, any number of them), on the operands args[i], in the order
// of the op's input slots. Operands are written "x0 t1": x<k> is xs[k], t<k> the result of an
// earlier step k. attrs[i] has the attributes that do not have their default, as "name=value
// name=value"; booleans are true or false, strings stand without quotes; it is "" where there are
// none, and attrs may be left out altogether. results[k] is the step whose result is outs[k].
//
//   h = fused_elementwise([a, b])
//       {ops=["elementwise_mul", "scale", "gelu"], args=["x0 x1", "t0", "t1"],
//        attrs=["", "scale=0.5", ""], results=[2]}
//
// The pass that makes it runs after autograd: it has no gradient. Backward ops (relu_grad, ...) can
// be in a chain like all others. outs[k] may take the memory of xs[k]: every block of the inputs is
// read before results are written.
#include <array>
#include <charconv>
#include <optional>
#include <sstream>

#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/element_loop.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

struct Operand {
  bool is_step;  // t<k>, else x<k>
  size_t index;
};

struct Step {
  std::string type;
  std::vector<Operand> operands;
  ir::Attrs attrs;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

std::optional<Operand> parse_operand(const std::string& word) {
  if (word.size() < 2 || (word[0] != 'x' && word[0] != 't')) return std::nullopt;
  size_t index = 0;
  const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), index);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return Operand{word[0] == 't', index};
}

std::optional<ir::Attr> parse_value(const std::string& text, ir::AttrType type) {
  if (type == ir::AttrType::kString) return ir::Attr(text);
  if (type == ir::AttrType::kBool) {
    if (text == "true" || text == "false") return ir::Attr(text == "true");
    return std::nullopt;
  }
  const char *begin = text.data(), *end = begin + text.size();
  if (type == ir::AttrType::kInt) {
    int64_t value = 0;
    const auto [at, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || at != end) return std::nullopt;
    return ir::Attr(value);
  }
  double value = 0;
  const auto [at, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || at != end || type != ir::AttrType::kFloat) return std::nullopt;
  return ir::Attr(value);
}

// `where` starts the messages of errors.
Step parse_step(const std::string& type, const std::string& args, const std::string& attrs,
                const std::string& where) {
  const ir::OpDef* def = ir::find_op(type);
  check_arg(def != nullptr && def->element_wise, where, "'", type, "' is not an element-wise op");
  Step step{type, {}, {}};
  for (const std::string& word : words(args)) {
    const auto operand = parse_operand(word);
    check_arg(operand.has_value(), where, "'", word, "' is no operand; expected x<k> or t<k>");
    step.operands.push_back(*operand);
  }
  for (const std::string& word : words(attrs)) {
    const size_t equals = word.find('=');
    const ir::AttrDef* attr = def->find_attr(word.substr(0, equals));
    std::optional<ir::Attr> value;
    if (attr && equals != std::string::npos)
      value = parse_value(word.substr(equals + 1), attr->type);
    check_arg(value.has_value(), where, "'", word, "' is no attribute of ", type);
    step.attrs.insert_or_assign(attr->name, *value);
  }
  normalize_attrs(*def, step.attrs, where);
  return step;
}

// `args` is an Infer or a Prepare.
template <class Args>
std::vector<Step> parse_steps(const Args& args) {
  const auto types = args.template attr<ir::Strings>("ops");
  const auto operands = args.template attr<ir::Strings>("args");
  auto attrs = args.template attr<ir::Strings>("attrs");
  const std::string where = ir::describe(args.op());
  if (attrs.empty()) attrs.resize(types.size());
  check_arg(!types.empty() && operands.size() == types.size() && attrs.size() == types.size(),
            where, "has ", types.size(), " ops, ", operands.size(), " args and ", attrs.size(),
            " attrs; expected as many of each");
  std::vector<Step> steps;
  for (size_t i = 0; i < types.size(); ++i)
    steps.push_back(parse_step(types[i], operands[i], attrs[i], str(where, "step ", i, ": ")));
  return steps;
}

void infer(ir::Infer& c) {
  const size_t inputs = c.count("xs");
  c.check(inputs > 0, "needs at least one input");
  const ir::TensorType& x = c.in("xs");
  c.check(is_float(x.dtype) && x.kind == ir::VarKind::kDense, c.show("xs"),
          "; expected a float, dense");
  for (size_t i = 1; i < inputs; ++i)
    c.check(c.in("xs", i) == x, c.show("xs", i), ", but ", c.show("xs"),
            "; all must have one shape and dtype");
  const std::vector<Step> steps = parse_steps(c);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const ir::OpDef& def = ir::op_def(step.type);
    const bool many = def.inputs[0].arity == ir::Arity::kMany;
    c.check(many ? !step.operands.empty() : step.operands.size() == def.inputs.size(), "step ", i,
            ": ", step.type, " has ", step.operands.size(), " operands");
    for (const Operand& operand : step.operands)
      c.check(operand.index < (operand.is_step ? i : inputs), "step ", i, ": there is no ",
              operand.is_step ? "t" : "x", operand.index);
  }
  const auto results = c.attr<ir::Ints>("results");
  c.check(results.size() == c.out_count("outs") && !results.empty(), "has ", c.out_count("outs"),
          " outputs, but results are ", ir::Attr(results));
  for (size_t k = 0; k < results.size(); ++k) {
    c.check(results[k] >= 0 && results[k] < static_cast<int64_t>(steps.size()), "results are ",
            ir::Attr(results), "; there are ", steps.size(), " steps");
    c.out("outs", k) = x;
  }
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = static_cast<double>(c.attr<ir::Strings>("ops").size()) *
                   static_cast<double>(c.in("xs").shape.numel())};
}

class FusedKernel final : public kernel::Kernel {
 public:
  explicit FusedKernel(kernel::Prepare& p) {
    const kernel::Desc& x = p.in("xs");
    stored_ = x.dtype;
    const DType computed = is_half(stored_) ? f32 : stored_;
    unit_ = static_cast<int64_t>(size_of(computed));
    bool keeps_zero = true;
    for (const Step& step : parse_steps(p)) keeps_zero &= add(step, p.op(), computed);
    for (const int64_t step : p.attr<ir::Ints>("results"))
      results_.push_back(place_of_[static_cast<size_t>(step)]);

    Layout layout;
    for (size_t i = 0; i < p.count("xs") && layout.is_plain(); ++i) layout = p.in("xs", i).layout;
    if (layout.has_padding(x.shape) && !keeps_zero) layout = Layout::plain();
    for (size_t i = 0; i < p.count("xs"); ++i) xs_.push_back(p.input("xs", i, layout));
    for (size_t k = 0; k < results_.size(); ++k) outs_.push_back(p.output("outs", k, layout));
    n_ = layout.stored(x.shape);
    // A block of each intermediate per thread, and of each input that is converted, together about
    // 16 KB.
    const auto blocks = static_cast<int64_t>(calls_.size() + (is_half(stored_) ? xs_.size() : 0));
    block_ = std::clamp<int64_t>((16 << 10) / unit_ / blocks, 256, 2048);
    area_ = blocks * block_ * unit_;
    parts_ = parts_for(n_, 1 << 14);
    scratch_ = p.scratch(static_cast<size_t>(area_ * parts_));
  }

  void run(const kernel::Run& r) override {
    parallel_parts(n_, parts_, [&](int part, int64_t begin, int64_t end) {
      char* area = r.out<char>(scratch_) + part * area_;
      for (int64_t at = begin; at < end; at += block_)
        run_block(r, area, at, std::min(block_, end - at));
    });
  }

 private:
  // One loop: a step, or one addition of a `sum`.
  struct Call {
    std::unique_ptr<ElementLoop> loop;
    std::array<Operand, 2> operands;  // t<k> counts calls
  };

  // Returns whether zeros stay zero.
  bool add(const Step& step, const ir::Op& op, DType dtype) {
    std::vector<Operand> operands = step.operands;
    for (Operand& operand : operands)
      if (operand.is_step) operand.index = place_of_[operand.index];
    const auto push = [&](std::string_view type, const ir::Attrs& attrs, Operand a, Operand b) {
      auto loop = make_element_loop(type, attrs, dtype);
      if (!loop)
        fail(Error::Kind::kUnsupported, str(ir::describe(op), "no loop of ", type, " for ", dtype));
      calls_.push_back({std::move(loop), {a, b}});
    };
    bool keeps_zero = true;
    if (step.type == "sum") {
      const ir::Attrs plain{{"axis", -1}, {"act", ""}};
      if (operands.size() == 1)
        push("scale", {{"scale", 1.0}, {"bias", 0.0}, {"bias_after_scale", true}}, operands[0],
             operands[0]);
      for (size_t i = 1; i < operands.size(); ++i)
        push("elementwise_add", plain, i == 1 ? operands[0] : Operand{true, calls_.size() - 1},
             operands[i]);
    } else {
      push(step.type, step.attrs, operands[0], operands.back());
      keeps_zero = calls_.back().loop->keeps_zero();
    }
    place_of_.push_back(calls_.size() - 1);
    return keeps_zero;
  }

  void run_block(const kernel::Run& r, char* area, int64_t at, int64_t n) const {
    const size_t last = calls_.size() - 1;
    const bool half = is_half(stored_);
    const auto place = [&](size_t i) { return area + static_cast<int64_t>(i) * block_ * unit_; };
    char* direct = place(last);
    // The last call has no later reader of an input in its way, so it can write its output itself.
    for (size_t k = 0; k < outs_.size(); ++k)
      if (results_[k] == last && !half) direct = r.out<char>(outs_[k]) + at * unit_;
    const auto result = [&](size_t call) { return call == last ? direct : place(call); };
    const auto input = [&](size_t i) -> const char* {
      return half ? place(calls_.size() + i) : r.in<char>(xs_[i]) + at * unit_;
    };
    for (size_t i = 0; i < xs_.size() && half; ++i)
      widen(stored_, r.in<uint16_t>(xs_[i]) + at,
            reinterpret_cast<float*>(place(calls_.size() + i)), n);
    for (size_t i = 0; i < calls_.size(); ++i) {
      std::array<const void*, 2> in;
      for (size_t k = 0; k < 2; ++k) {
        const Operand operand = calls_[i].operands[k];
        in[k] = operand.is_step ? result(operand.index) : input(operand.index);
      }
      calls_[i].loop->run(in.data(), result(i), n);
    }
    for (size_t k = 0; k < outs_.size(); ++k) {
      if (half) {
        narrow(reinterpret_cast<const float*>(result(results_[k])), stored_,
               r.out<uint16_t>(outs_[k]) + at, n);
        continue;
      }
      char* out = r.out<char>(outs_[k]) + at * unit_;
      if (out != direct) std::copy_n(result(results_[k]), n * unit_, out);
    }
  }

  std::vector<Call> calls_;
  std::vector<size_t> place_of_;  // the call that ends each step
  std::vector<size_t> results_;   // calls
  std::vector<kernel::Slot> xs_, outs_;
  kernel::Slot scratch_;
  DType stored_;
  int64_t n_, unit_, block_, area_;  // unit_: bytes of a computed value
  int parts_;
};

FLEETX_OP(fused_elementwise)
    .input("xs", ir::Arity::kMany)
    .output("outs", ir::Arity::kMany)
    .required_attr("ops", ir::AttrType::kStrings)
    .required_attr("args", ir::AttrType::kStrings)
    .attr("attrs", ir::Strings{})
    .required_attr("results", ir::AttrType::kInts)
    .infer(infer)
    .cost(cost)
    .kernel<FusedKernel>()
    .in_place("outs", "xs");

}  // namespace
}  // namespace fleetx::ops
