#include "fleetx/strategies/half_support.h"

#include <sstream>

#include "fleetx/autograd/backward.h"
#include "fleetx/ir/builder.h"

namespace fleetx::strategies {
namespace {

std::string key_of(const ir::Program& main, const ir::Op& op, const HalfSupport::DTypes& inputs,
                   const HalfSupport::NeedsGradient& needs) {
  std::ostringstream key;
  key << op.type();
  for (const auto& [name, attr] : op.attrs) key << ' ' << name << '=' << attr;
  for (size_t s = 0; s < inputs.size(); ++s) {
    key << " |";
    for (size_t i = 0; i < inputs[s].size(); ++i) {
      const std::string& name = op.inputs[s][i];
      key << ' ' << inputs[s][i] << main.var(name).type.shape << (needs(name) ? '!' : ' ');
    }
  }
  for (const ir::Names& names : op.outputs) key << ' ' << names.size();
  return key.str();
}

bool is_half(DType dtype) { return dtype == bf16 || dtype == f16; }

}  // namespace

const HalfSupport::DTypes* HalfSupport::outputs(const ir::Program& main, const ir::Op& op,
                                                const DTypes& inputs, const NeedsGradient& needs) {
  const auto [it, is_new] = answers_.try_emplace(key_of(main, op, inputs, needs));
  if (is_new) it->second = ask(main, op, inputs, needs);
  return it->second.possible ? &it->second.outputs : nullptr;
}

HalfSupport::Answer HalfSupport::ask(const ir::Program& main, const ir::Op& op,
                                     const DTypes& inputs, const NeedsGradient& needs) {
  ir::Program scratch, startup;
  ir::Builder b(scratch, startup);
  Answer answer;
  try {
    std::vector<ir::Arg> args;
    std::vector<ir::Var> trained;
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      std::vector<ir::Var> vars;
      for (size_t i = 0; i < op.inputs[s].size(); ++i) {
        const std::string& name = op.inputs[s][i];
        vars.push_back(b.data(str("in_", s, "_", i), inputs[s][i], main.var(name).type.shape));
        if (needs(name)) trained.push_back(vars.back());
      }
      args.emplace_back(op.def->inputs[s].name, vars);
    }
    std::vector<ir::Dest> dests;
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      ir::Names names;
      for (size_t i = 0; i < op.outputs[s].size(); ++i) names.push_back(str("out_", s, "_", i));
      if (!names.empty()) dests.emplace_back(op.def->outputs[s].name, names);
    }
    b.op(op.type(), args, op.attrs, dests);

    std::vector<ir::Var> targets, seeds;
    answer.outputs.resize(op.outputs.size());
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      for (size_t i = 0; i < op.outputs[s].size(); ++i) {
        const ir::Var out = b.var(str("out_", s, "_", i));
        answer.outputs[s].push_back(out.dtype());
        if (!is_half(out.dtype())) continue;
        targets.push_back(out);
        seeds.push_back(b.data(str("seed_", s, "_", i), out.dtype(), out.shape()));
      }
    }
    if (op.def->grad != nullptr && !targets.empty() && !trained.empty()) {
      const std::vector<ir::Var> gradients = autograd::gradients(targets, trained, seeds);
      for (size_t i = 0; i < gradients.size(); ++i)
        if (gradients[i].defined() && gradients[i].dtype() != trained[i].dtype()) return {};
    }
  } catch (const Error& error) {
    // A refusal by the op means that it has no 16-bit form; an internal error is a bug.
    if (error.kind() == Error::Kind::kInternal) throw;
    return {};
  }
  answer.possible = true;
  return answer;
}

}  // namespace fleetx::strategies
