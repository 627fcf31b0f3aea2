#include "fleetx/autograd/backward.h"

#include <algorithm>
#include <map>

#include "fleetx/ir/grad.h"
#include "fleetx/ir/rewriter.h"

namespace fleetx::autograd {
namespace {

using ir::Names;
using ir::Op;
using ir::Var;

template <class Predicate>
bool any_name(const std::vector<Names>& slots, const Predicate& predicate) {
  return std::any_of(slots.begin(), slots.end(), [&](const Names& names) {
    return std::any_of(names.begin(), names.end(), predicate);
  });
}

bool same_dims(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int d = 0; d < a.rank(); ++d)
    if (a[d] != b[d] && a[d] >= 0 && b[d] >= 0) return false;
  return true;
}

class Backward {
 public:
  Backward(ir::Builder& builder, const std::vector<Var>& inputs,
           const std::set<std::string>& no_grad)
      : b_(builder) {
    for (const Op& op : b_.main().ops())
      if (op.role == ir::Role::kForward) forward_.push_back(&op);
    find_dependents(inputs, no_grad);
  }

  void seed(const Var& target, const Var& gradient) { parts_[target.name()].push_back(gradient); }

  void run() {
    for (auto it = forward_.rbegin(); it != forward_.rend(); ++it)
      if (reached(**it)) differentiate(**it);
  }

  // The whole gradient of a variable: the parts that arrived, added up. Undefined where none did.
  Var total(const std::string& name) {
    const auto done = totals_.find(name);
    if (done != totals_.end()) return done->second;
    const auto parts = parts_.find(name);
    if (parts == parts_.end()) return {};
    Var sum = parts->second.front();
    if (parts->second.size() > 1)
      sum = b_.op("sum", {{"xs", parts->second}}, {},
                  {{"out", b_.unique_name(ir::grad_name(name) + "_sum")}});
    totals_.emplace(name, sum);
    return sum;
  }

 private:
  // A variable needs a gradient if it is an input or computed from one, and nothing on the way
  // stops it.
  void find_dependents(const std::vector<Var>& inputs, const std::set<std::string>& no_grad) {
    const auto blocked = [&](const std::string& name) {
      return no_grad.contains(name) || !is_float(b_.main().var(name).type.dtype);
    };
    for (const Var& input : inputs)
      if (!blocked(input.name())) needed_.insert(input.name());
    for (const Op* op : forward_) {
      if (op->def->grad == nullptr) continue;
      if (!any_name(op->inputs, [&](const std::string& n) { return needed_.contains(n); }))
        continue;
      for (const Names& names : op->outputs) {
        for (const std::string& name : names) {
          const ir::VarInfo& info = b_.main().var(name);
          if (!blocked(name) && !info.stop_gradient && !info.persistable) needed_.insert(name);
        }
      }
    }
  }

  bool reached(const Op& op) const {
    const auto needed = [&](const std::string& n) { return needed_.contains(n); };
    const auto arrived = [&](const std::string& n) { return needed(n) && parts_.contains(n); };
    return op.def->grad != nullptr && any_name(op.outputs, arrived) && any_name(op.inputs, needed);
  }

  void differentiate(const Op& op) {
    check_arg(op.guard.empty(), ir::describe(op), "runs only where '", op.guard,
              "' is true, and so has no gradient in every step; a loss cannot depend on it");
    // Errors and texts of backward ops point at the line of the forward op.
    const auto loc = b_.at(op.loc);
    const auto layer = b_.in_layer(op.name);
    const auto stage = b_.in_stage(op.stage);
    const auto needed = [&](const std::string& name) { return needed_.contains(name); };
    ir::Grad g(
        b_, op, [&](const std::string& name) { return needed(name) ? total(name) : Var(); },
        needed);
    op.def->grad(g);
    for (const auto& [where, gradient] : g.results()) {
      const std::string& name = op.in(where.first)[where.second];
      if (!needed(name)) continue;
      const ir::TensorType& type = b_.main().var(name).type;
      FLEETX_CHECK(same_dims(gradient.type().shape, type.shape), ir::describe(op),
                   "the gradient of '", name, "' is ", gradient.type(), ", the variable is ", type);
      parts_[name].push_back(gradient);
    }
  }

  ir::Builder& b_;
  std::vector<const Op*> forward_;  // list nodes stay where they are while backward is appended
  std::set<std::string> needed_;
  std::map<std::string, std::vector<Var>> parts_;
  std::map<std::string, Var> totals_;
};

void check_loss(const Var& loss, bool again) {
  check_arg(loss.shape().numel() == 1, "the loss '", loss.name(), "' must have one element, it is ",
            loss.type(), "; take its mean first");
  check_arg(is_float(loss.dtype()), "the loss '", loss.name(), "' must be a float, it is ",
            loss.type());
  if (again) return;
  for (const Op& op : loss.builder().main().ops())
    check_arg(op.role != ir::Role::kBackward, "this program already has a backward part (op ",
              op.type(), "): minimize one loss, or add the losses up first");
}

std::vector<Var> wanted_parameters(ir::Builder& b, const Names& given) {
  std::vector<Var> params;
  for (const std::string& name : given) params.push_back(b.var(name));
  if (given.empty())
    for (const ir::VarInfo* p : b.main().parameters())
      if (!p->stop_gradient) params.push_back(b.var(p->name));
  check_arg(!params.empty(), "the program has no trainable parameter");
  return params;
}

// Inputs whose gradient is asked for by stop_gradient = false.
std::vector<Var> wanted_inputs(ir::Builder& b) {
  std::vector<Var> inputs;
  for (const ir::VarInfo* v : b.main().vars())
    if (v->is_data && !v->stop_gradient && is_float(v->type.dtype))
      inputs.push_back(b.var(v->name));
  return inputs;
}

std::string free_grad_name(ir::Builder& b, const std::string& variable) {
  std::string name = ir::grad_name(variable);
  return b.main().find(name) == nullptr ? name : b.unique_name(name);
}

// Gradients of inputs can be fetched by their name.
void name_gradient(ir::Builder& b, const Var& input, const Var& gradient) {
  const std::string name = ir::grad_name(input.name());
  if (gradient.defined() && b.main().find(name) == nullptr)
    b.op("assign", {{"x", gradient}}, {}, {{"out", name}});
}

// What the program trains. A second loss adds the parameters that are its own.
void note_training(ir::Program& program, const Var& loss, const Var& seed,
                   const std::vector<ParamGrad>& pairs) {
  ir::Training& training = ir::Rewriter(program).edit_training();
  if (training.empty()) training = {.loss = loss.name(), .seed = seed.name()};
  for (const ParamGrad& pair : pairs)
    if (training.find(pair.param.name()) == nullptr)
      training.parameters.push_back({pair.param.name(), pair.grad.name()});
}

// Position of the op that writes each variable (last).
std::map<std::string, size_t> producers(const ir::Program& program) {
  std::map<std::string, size_t> at;
  size_t position = 0;
  for (const Op& op : program.ops()) {
    ++position;
    for (const Names& names : op.outputs)
      for (const std::string& name : names) at[name] = position;
  }
  return at;
}

}  // namespace

std::vector<Var> gradients(const std::vector<Var>& targets, const std::vector<Var>& inputs,
                           const std::vector<Var>& seeds, const std::set<std::string>& no_grad) {
  check_arg(!targets.empty() && targets.size() == seeds.size(),
            "gradients() needs one seed for each of the ", targets.size(), " targets, got ",
            seeds.size());
  ir::Builder& b = targets.front().builder();
  const auto role = b.in_role(ir::Role::kBackward);
  Backward backward(b, inputs, no_grad);
  for (size_t i = 0; i < targets.size(); ++i) backward.seed(targets[i], seeds[i]);
  backward.run();
  std::vector<Var> out;
  for (const Var& input : inputs) out.push_back(backward.total(input.name()));
  return out;
}

std::vector<ParamGrad> append_backward(const Var& loss, const BackwardOptions& options) {
  check_loss(loss, options.again);
  ir::Builder& b = loss.builder();
  const std::vector<Var> params = wanted_parameters(b, options.parameters);
  const std::vector<Var> inputs = wanted_inputs(b);
  std::vector<Var> variables = params;
  variables.insert(variables.end(), inputs.begin(), inputs.end());
  const auto role = b.in_role(ir::Role::kBackward);
  const Var one =
      b.op("fill", {}, {{"shape", loss.shape()}, {"dtype", loss.dtype()}, {"value", 1.0}},
           {{"out", free_grad_name(b, loss.name())}});
  std::vector<Var> grads = gradients({loss}, variables, {one}, options.no_grad);
  for (size_t i = 0; i < inputs.size(); ++i) name_gradient(b, inputs[i], grads[params.size() + i]);

  std::vector<ParamGrad> out;
  std::set<std::string> taken;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!grads[i].defined()) continue;
    // x + y passes one gradient to both: each parameter still gets a variable of its own.
    if (!taken.insert(grads[i].name()).second)
      grads[i] = b.op("assign", {{"x", grads[i]}}, {},
                      {{"out", b.unique_name(ir::grad_name(params[i].name()))}});
    out.push_back({params[i], grads[i]});
  }
  check_arg(!out.empty(), "the loss '", loss.name(),
            "' does not depend on any trainable parameter");
  std::map<std::string, size_t> at = producers(b.main());
  std::stable_sort(out.begin(), out.end(), [&](const ParamGrad& x, const ParamGrad& y) {
    return at[x.grad.name()] < at[y.grad.name()];
  });
  note_training(b.main(), loss, one, out);
  return out;
}

std::vector<ParamGrad> trained(ir::Builder& builder) {
  std::vector<ParamGrad> out;
  for (const ir::Training::Parameter& p : builder.main().training().parameters)
    out.push_back({builder.var(p.name), builder.var(p.gradient)});
  return out;
}

}  // namespace fleetx::autograd
