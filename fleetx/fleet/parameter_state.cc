#include "fleetx/fleet/parameter_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fleetx/optim/optimizer.h"
#include "fleetx/ps/snapshot.h"

namespace fleetx::fleet {
namespace {

// Only counts what a record has: such tables are written and not trained.
class RecordOf final : public ps::UpdateRule {
 public:
  explicit RecordOf(const ParameterVars& vars)
      : states_(vars.states.size()), scalars_(vars.scalars.size()) {}
  std::string text() const override { return "record"; }
  std::vector<float> states() const override { return std::vector<float>(states_); }
  std::vector<float> scalars() const override { return std::vector<float>(scalars_); }
  void update(const Batch& /*batch*/) const override {}

 private:
  size_t states_, scalars_;
};

// What read_variables() collects of one parameter.
class Collected {
 public:
  Collected(ParameterVars vars, const std::set<std::string>& names) : vars_(std::move(vars)) {
    const ir::Names& states = vars_.states;
    values_ = {vars_.name};
    values_.insert(values_.end(), states.begin(), states.end());
    for (std::string& name : values_)
      if (!names.contains(name)) name.clear();
    for (const std::string& name : vars_.scalars)
      scalars_.push_back(names.contains(name) ? name : "");
  }

  void take(const ps::SavedRecord& r, std::map<std::string, Tensor>& found) const {
    const auto numel = static_cast<uint64_t>(vars_.shape.numel());
    uint64_t begin = r.begin;
    if (r.is_row) {
      const bool matrix = vars_.shape.rank() == 2;
      const auto dim = static_cast<uint64_t>(matrix ? vars_.shape[1] : 0);
      check_arg(matrix && (r.values.empty() || dim == r.width), r.path, ": sparse table '", r.name,
                "' has rows of ", r.width, " values, the parameter ", dim,
                ": it is a snapshot of another model");
      if (begin >= numel / dim) return;
      begin *= dim;
    } else {
      check_arg(r.numel == numel, r.path, ": parameter '", r.name, "' has ", r.numel,
                " elements, in this program ", numel, " ", vars_.shape,
                ": it is a snapshot of another model");
    }
    if (!r.values.empty() && wants_state())
      check_arg(r.states == vars_.states.size() && r.scalars == vars_.scalars.size(), r.path,
                ": parameter '", r.name, "' was trained by another optimizer: ", r.states,
                " states and ", r.scalars, " scalars, in this program ", vars_.states.size(),
                " and ", vars_.scalars.size());
    const uint64_t width =
        r.values.empty() ? numel / static_cast<uint64_t>(vars_.shape[0]) : r.width;
    for (size_t k = 0; k < values_.size(); ++k) {
      if (values_[k].empty()) continue;
      float* to = variable(found, values_[k], vars_.shape) + begin;
      if (r.values.empty())
        std::fill_n(to, width, 0.0f);
      else
        std::memcpy(to, r.values.data() + k * width * sizeof(float), width * sizeof(float));
    }
    if (r.values.empty()) return;
    for (size_t k = 0; k < scalars_.size(); ++k)
      if (!scalars_[k].empty())
        std::memcpy(variable(found, scalars_[k], {1}), r.scalar_values.data() + k * sizeof(float),
                    sizeof(float));
  }

 private:
  bool wants_state() const {
    const auto named = [](const std::string& name) { return !name.empty(); };
    return std::any_of(values_.begin() + 1, values_.end(), named) ||
           std::ranges::any_of(scalars_, named);
  }
  static float* variable(std::map<std::string, Tensor>& found, const std::string& name,
                         const Shape& shape) {
    auto it = found.find(name);
    if (it == found.end()) {
      it = found.emplace(name, Tensor(f32, shape)).first;
      std::ranges::fill(it->second.data<float>(), 0.0f);
    }
    return it->second.data<float>().data();
  }

  ParameterVars vars_;
  ir::Names values_, scalars_;  // "": nobody asks for it
};

}  // namespace

std::vector<ParameterVars> parameter_vars(const ir::Program& main) {
  std::vector<ParameterVars> all;
  for (const ir::Op& op : main.ops()) {
    if (!op.def->updates_parameters) continue;
    for (size_t i = 0; i < op.in("param").size(); ++i) {
      ParameterVars vars{.name = op.in("param")[i],
                         .shape = main.var(op.in("param")[i]).type.shape};
      bool plain = main.var(vars.name).type.dtype == f32;
      for (const optim::StateDef& state : optim::optimizer_def(op.type()).states) {
        const std::string& var = op.in(state.slot)[i];
        (state.scalar ? vars.scalars : vars.states).push_back(var);
        plain = plain && main.var(var).type.dtype == f32;
      }
      if (plain) all.push_back(std::move(vars));
    }
  }
  return all;
}

ParameterState::ParameterState(std::vector<ParameterVars> vars) : vars_(std::move(vars)) {
  if (vars_.empty()) return;
  job_.slicing.slice_var_up = false;
  job_.dense.push_back({.name = "@dense@", .params = {}});
  for (const ParameterVars& v : vars_)
    job_.dense.front().params.push_back({v.name, v.shape, std::make_shared<RecordOf>(v)});
  job_.check();
}

void ParameterState::with_table(const runtime::Scope& scope,
                                const std::function<void(ps::TableService&)>& call) const {
  ps::PayloadPool pool;
  ps::TableService service(job_, 0, 1, pool);
  const auto put = [&](const std::string& var, std::span<float> to) {
    std::ranges::copy(scope.get(var).data<float>(), to.begin());
  };
  for (const auto& table : service.dense()) {
    for (ps::DenseTable::Entry& entry : table->values.entries()) {  // whole parameters
      const ParameterVars& vars = vars_[entry.block.param];
      const auto n = static_cast<size_t>(entry.block.size());
      const std::span record(entry.record), scalars(entry.scalars);
      put(vars.name, record.first(n));
      for (size_t s = 0; s < vars.states.size(); ++s)
        put(vars.states[s], record.subspan((s + 1) * n, n));
      for (size_t s = 0; s < vars.scalars.size(); ++s) put(vars.scalars[s], scalars.subspan(s, 1));
    }
    table->values.mark_set();
  }
  call(service);
}

std::map<std::string, Tensor> read_variables(const ir::Program& program, const std::string& folder,
                                             const std::set<std::string>& names) {
  std::map<std::string, Collected, std::less<>> wanted;
  for (const ParameterVars& vars : parameter_vars(program))
    wanted.emplace(vars.name, Collected(vars, names));
  for (const std::string& name : names)  // of programs that do not train
    if (const ir::VarInfo* var = program.find(name); var != nullptr && var->type.dtype == f32)
      wanted.emplace(name, Collected({.name = name, .shape = var->type.shape}, names));
  std::map<std::string, Tensor> found;
  ps::read_records(folder, [&](const ps::SavedRecord& record) {
    const auto it = wanted.find(record.name);
    if (it != wanted.end()) it->second.take(record, found);
  });
  return found;
}

}  // namespace fleetx::fleet
