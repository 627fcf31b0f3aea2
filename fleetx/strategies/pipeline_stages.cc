#include "fleetx/strategies/pipeline_stages.h"

#include <algorithm>

#include "fleetx/base/log.h"
#include "fleetx/base/names.h"
#include "fleetx/strategies/pipeline_cut.h"

namespace fleetx::strategies {
namespace {

using ir::Names;
using ir::Op;
using ir::Role;
using Position = ir::Rewriter::Position;

template <class Fn>
void each(const std::vector<Names>& slots, const Fn& fn) {
  for (const Names& names : slots)
    for (const std::string& name : names) fn(name);
}

bool acts(const Op& op) {
  return op.def->random || op.def->side_effect || ir::is_collective(op) || !op.guard.empty();
}

// Ops that every stage can compute for itself: they depend on data and constants alone, or
// on parameters and constants alone.
class Free {
 public:
  explicit Free(const ir::Program& main) : p_(main) {
    for (const Op& op : main.ops())
      if (op.role == Role::kForward)
        each(op.outputs, [&](const auto& name) {
          if (main.var(name).persistable) written_.insert(name);
        });
  }

  // In the order of the program.
  bool take(const Op& op) {
    bool staged = acts(op), fed = false, learned = false;
    each(op.inputs, [&](const std::string& name) {
      const ir::VarInfo& v = p_.var(name);
      staged = staged || staged_.contains(name) || written_.contains(name);
      fed = fed || v.is_data || fed_.contains(name);
      learned = learned || v.is_parameter || learned_.contains(name);
    });
    each(op.outputs, [&](const std::string& name) { staged = staged || p_.var(name).persistable; });
    // A device_guard has no effect on ops that do not depend on data.
    staged = staged || (fed && (learned || op.stage != kAnyStage));
    each(op.outputs, [&](const std::string& name) {
      if (staged) staged_.insert(name);
      if (fed) fed_.insert(name);
      if (learned) learned_.insert(name);
    });
    return !staged;
  }

 private:
  const ir::Program& p_;
  std::set<std::string> staged_, fed_, learned_, written_;
};

void check_guards(const ir::Program& main, int stages) {
  std::set<int> named;
  for (const Op& op : main.ops())
    if (op.stage != kAnyStage) named.insert(op.stage);
  std::vector<std::string> missing;
  for (int s = 0; s <= *named.rbegin(); ++s)
    if (!named.contains(s)) missing.push_back(str(s));
  check_arg(missing.empty(), "pipeline: device_guards name the stages up to ", *named.rbegin(),
            ", but no op stands under ", join(missing, ", "),
            "; number the devices 0, 1, 2, ... without a gap");
  check_arg(static_cast<int>(named.size()) == stages, "pipeline: device_guards name ", named.size(),
            " stages, but hybrid_configs.pp_degree is ", stages,
            "; give both the same value, or leave the degree at 1");
}

// A value must not be read by an earlier stage; state is written by one stage only.
void check_flow(const ir::Program& main) {
  std::map<std::string, const Op*> maker, writer;
  std::map<std::string, std::vector<const Op*>> readers;
  for (const Op& op : main.ops()) {
    if (op.role != Role::kForward) continue;
    each(op.inputs, [&](const std::string& name) {
      if (main.var(name).persistable) readers[name].push_back(&op);
      const auto it = maker.find(name);
      if (it == maker.end() || op.stage == kAnyStage) return;
      check_arg(it->second->stage <= op.stage, "pipeline: ", ir::describe(op), "stands on stage ",
                op.stage, " and reads '", name, "', which ", ir::describe(*it->second),
                "makes on stage ", it->second->stage,
                ": values cannot go back to an earlier stage; move one of the two layers to "
                "another device_guard");
    });
    each(op.outputs, [&](const std::string& name) {
      if (main.var(name).persistable) writer[name] = &op;
      if (op.stage != kAnyStage) maker[name] = &op;
    });
  }
  for (const auto& [name, by] : writer)
    for (const Op* reader : readers[name])
      check_arg(reader->stage == by->stage, "pipeline: ", ir::describe(*reader), "reads '", name,
                "' on stage ", reader->stage, ", which ", ir::describe(*by), "writes on stage ",
                by->stage,
                ": state that changes belongs to one stage; put both under one "
                "device_guard");
}

void check_parameters(const ir::Program& main, int stages) {
  std::vector<bool> has(static_cast<size_t>(stages));
  std::map<int, const Op*> first;
  for (const Op& op : main.ops()) {
    if (op.stage == kAnyStage) continue;
    first.try_emplace(op.stage, &op);
    each(op.inputs, [&](const std::string& name) {
      const ir::VarInfo& v = main.var(name);
      if (v.is_parameter && !v.stop_gradient) has[static_cast<size_t>(op.stage)] = true;
    });
  }
  for (int s = 0; s < stages; ++s)
    check_arg(has[static_cast<size_t>(s)], "pipeline: stage ", s, " of ", stages, " (from ",
              first.contains(s) ? ir::describe(*first.at(s)) : "nothing ",
              "on) has no parameter to train, so its worker would only pass values on; give its "
              "ops to a neighbour, or use fewer stages");
}

}  // namespace

int guarded_stages(const ir::Program& main) {
  int most = kAnyStage;
  for (const Op& op : main.ops()) most = std::max(most, op.stage);
  return most + 1;
}

void stage_forward(ir::Program& main, const StageOptions& options) {
  ir::Rewriter rw(main);
  const bool guarded = guarded_stages(main) > 0;
  if (options.stages == 1) {
    // One worker computes all of them.
    for (Position op = rw.begin(); op != rw.end(); ++op) rw.set_stage(op, kAnyStage);
  } else if (guarded) {
    check_guards(main, options.stages);
  }
  Free free(main);
  std::vector<Position> staged;
  for (Position op = rw.begin(); op != rw.end(); ++op)
    if (op->role == Role::kForward) {
      if (free.take(*op))
        rw.set_stage(op, kAnyStage);
      else
        staged.push_back(op);
    }
  if (guarded && options.stages > 1) {
    std::map<std::string, int> made;
    for (const Position op : staged) {
      int highest = 0;
      each(op->inputs, [&](const std::string& name) {
        if (const auto it = made.find(name); it != made.end())
          highest = std::max(highest, it->second);
      });
      if (op->stage == kAnyStage) rw.set_stage(op, highest);
      each(op->outputs, [&](const std::string& name) { made[name] = op->stage; });
    }
  } else {
    std::vector<const Op*> ops;
    for (const Position op : staged) ops.push_back(&*op);
    const std::vector<int> cut =
        options.stages == 1 ? std::vector<int>(ops.size(), 0)
                            : cut_into_stages(main, ops, {options.stages, options.micro_batch});
    for (size_t i = 0; i < staged.size(); ++i) rw.set_stage(staged[i], cut[i]);
  }
  check_flow(main);
  if (options.stages > 1) check_parameters(main, options.stages);
}

// ---- backward ----

namespace {

class StageBackward {
 public:
  explicit StageBackward(ir::Program& main) : rw_(main) {}

  std::vector<SharedGradient> run() {
    for (Position op = rw_.begin(); op != rw_.end();) {
      const Position next = std::next(op);
      if (op->role == Role::kBackward) {
        read_received_value(op);
        if (op->type() == "sum")
          op = add_up(op);
        else if (op->stage == kAnyStage)
          rw_.set_stage(op, lowest(*op));
      }
      if (op != rw_.end())
        each(op->outputs, [&](const std::string& name) { homes_[name] = op->stage; });
      op = next;
    }
    return shared_;
  }

 private:
  int home(const std::string& name) const {
    const auto it = homes_.find(name);
    return it == homes_.end() ? kAnyStage : it->second;
  }
  int lowest(const Op& op) const {
    int least = kAnyStage;
    each(op.inputs, [&](const std::string& name) {
      const int at = home(name);
      if (at != kAnyStage && (least == kAnyStage || at < least)) least = at;
    });
    return least;
  }

  // A received value is kept for backward; it is not recomputed by the stage that sent it.
  void read_received_value(Position op) {
    const Op copy = *op;
    each(copy.inputs, [&](const std::string& name) {
      if (!name.ends_with(ir::kRecomputeSuffix)) return;
      const std::string original = name.substr(0, name.size() - ir::kRecomputeSuffix.size());
      if (home(name) != kAnyStage && op->stage != kAnyStage && home(name) < op->stage)
        rw_.rename_inputs(op, name, original);
    });
  }

  // Returns the sum, wherever it is now; end() where it is gone.
  Position add_up(Position op) {
    std::map<int, Names> parts;
    for (const std::string& x : op->in("xs")) parts[home(x)].push_back(x);
    const std::string out = op->out("out").front();
    int at = op->stage;
    if (const auto any = parts.extract(kAnyStage); !any.empty() && !parts.empty()) {
      Names& with = parts.contains(at) ? parts[at] : parts.begin()->second;
      with.insert(with.end(), any.mapped().begin(), any.mapped().end());
    }
    if (parts.size() <= 1) {
      rw_.set_stage(op, parts.empty() ? kAnyStage : parts.begin()->first);
      return op;
    }
    if (at == kAnyStage) at = parts.begin()->first;
    const ir::Training::Parameter* p = rw_.program().training().find_gradient(out);
    const bool is_last = p != nullptr && std::none_of(rw_.begin(), rw_.end(), [&](const Op& other) {
                           return other.reads(out);
                         });
    Names terms;
    SharedGradient shared;
    for (const auto& [stage, names] : parts) {
      std::string part = names.front();
      if (names.size() > 1 && (is_last || stage != at)) {
        part = rw_.fresh_name(str(out, "@STAGE", stage));
        rw_.insert(op, {.type = "sum",
                        .inputs = {{"xs", names}},
                        .outputs = {{"out", {part}}},
                        .role = Role::kBackward,
                        .name = op->name,
                        .loc = op->loc,
                        .stage = stage});
        homes_[part] = stage;
        terms.push_back(part);
      } else {
        terms.insert(terms.end(), names.begin(), names.end());
      }
      shared.parts[stage] = part;
    }
    if (is_last) {
      shared.parameter = p->name;
      shared.gradient = out;
      shared_.push_back(std::move(shared));
      rw_.erase(op);
      return rw_.end();
    }
    rw_.set_inputs(op, "xs", terms);
    rw_.set_stage(op, at);
    return op;
  }

  ir::Rewriter rw_;
  std::map<std::string, int> homes_;
  std::vector<SharedGradient> shared_;
};

}  // namespace

std::vector<SharedGradient> stage_backward(ir::Program& main) { return StageBackward(main).run(); }

// ---- the map ----

StageMap::StageMap(const ir::Program& main, int stages, const std::vector<SharedGradient>& shared)
    : p_(main), count_(stages) {
  for (const ir::Training::Parameter& p : main.training().parameters) needed_.insert(p.gradient);
  for (const SharedGradient& g : shared)
    for (const auto& [stage, part] : g.parts) needed_.insert(part);
  find_varying();
  find_stages();
}

int StageMap::home(const std::string& var) const {
  const auto it = homes_.find(var);
  return it == homes_.end() ? kAnyStage : it->second;
}

std::set<int> StageMap::readers(const std::string& var) const {
  const auto it = readers_.find(var);
  return it == readers_.end() ? std::set<int>{} : it->second;
}

int StageMap::owner(const std::string& state) const {
  const std::set<int> all = readers(state);
  return all.empty() ? kAnyStage : *all.begin();
}

bool StageMap::is_once(const Op& op) const {
  bool once = true;
  each(op.inputs, [&](const std::string& var) { once = once && !varies(var); });
  each(op.outputs, [&](const std::string& var) { once = once && !varies(var); });
  return once;
}

// Where no size is unknown, the batch is that of the first data; others may have several rows for a
// sample.
int64_t StageMap::batch() const {
  int64_t batch = 0;
  for (const ir::VarInfo* v : p_.vars()) {
    if (!v->is_data || v->type.shape.rank() == 0) continue;
    if (v->type.shape[0] < 0) return -1;
    if (batch == 0) batch = v->type.shape[0];
  }
  return batch == 0 ? -1 : batch;
}

bool StageMap::is_cut(const ir::VarInfo& data) const {
  if (!data.is_data || data.type.shape.rank() == 0) return false;
  const int64_t rows = data.type.shape[0], all = batch();
  return all < 0 ? rows < 0 : rows % all == 0;
}

// State that changes with each micro-batch makes what is read of it change, too.
void StageMap::find_varying() {
  for (const ir::VarInfo* v : p_.vars())
    if (is_cut(*v)) varies_.insert(v->name);
  for (size_t before = SIZE_MAX; before != varies_.size();) {
    before = varies_.size();
    for (const Op& op : p_.ops()) {
      bool own = op.def->random || op.def->side_effect || ir::is_collective(op);
      each(op.inputs, [&](const std::string& name) { own = own || varies(name); });
      if (own) each(op.outputs, [&](const std::string& name) { varies_.insert(name); });
    }
  }
}

void StageMap::find_stages() {
  std::set<int> all;
  for (int s = 0; s < count_; ++s) all.insert(s);
  std::set<std::string> learned;  // what follows from parameters
  for (const Op& op : p_.ops()) {
    bool any = false;
    each(op.inputs, [&](const std::string& name) {
      any = any || p_.var(name).is_parameter || learned.contains(name);
    });
    if (any) each(op.outputs, [&](const std::string& name) { learned.insert(name); });
  }
  // What nothing reads yet may be the learning rate, of which updates will ask on every stage.
  const auto may_be_rate = [&](const Op& op) {
    bool rate = op.role != Role::kBackward && is_once(op);
    each(op.outputs, [&](const std::string& name) { rate = rate && !learned.contains(name); });
    return rate;
  };
  // From the end, so that the readers of an op are known.
  for (auto op = p_.ops().rbegin(); op != p_.ops().rend(); ++op) {
    std::set<int>& mine = stages_[&*op];
    const bool anywhere = op->stage == kAnyStage || is_once(*op);
    bool changes_state = false, is_needed = false;
    each(op->outputs, [&](const std::string& name) {
      changes_state = changes_state || p_.var(name).persistable;
      is_needed = is_needed || needed_.contains(name) || name == p_.training().seed;
      if (!anywhere) homes_[name] = op->stage;
    });
    if (!anywhere)
      mine = {op->stage};
    else if (changes_state || is_needed)
      mine = all;
    else
      each(op->outputs, [&](const std::string& name) {
        const std::set<int> more = readers(name);
        mine.insert(more.begin(), more.end());
      });
    if (mine.empty() && may_be_rate(*op)) mine = all;
    each(op->inputs,
         [&](const std::string& name) { readers_[name].insert(mine.begin(), mine.end()); });
    if (!op->guard.empty()) readers_[op->guard].insert(mine.begin(), mine.end());
  }
}

}  // namespace fleetx::strategies
