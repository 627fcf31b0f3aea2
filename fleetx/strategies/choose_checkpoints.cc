#include "fleetx/strategies/choose_checkpoints.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fleetx/ir/infer.h"

namespace fleetx::strategies {
namespace {

constexpr int64_t kExampleBatch = 16;
// What moving a byte costs in flops, on machines of today: few ops of a network come near it.
constexpr double kFlopsPerByte = 8;
// Without a budget, so much more than the least memory is accepted where it saves work.
constexpr double kSlack = 1.4;

std::string without_suffix(const std::string& name) {
  return name.ends_with(ir::kRecomputeSuffix)
             ? name.substr(0, name.size() - ir::kRecomputeSuffix.size())
             : name;
}

bool is_copy(const ir::Op& op) {
  for (const ir::Names& names : op.outputs)
    for (const std::string& name : names)
      if (name.ends_with(ir::kRecomputeSuffix)) return true;
  return false;
}

// A value that forward makes.
struct Value {
  std::string name;
  double bytes = 0;
  int made = 0, last = 0;   // ops of forward: that makes it, that reads it last
  bool waited_for = false;  // backward reads it
};

// The forward part, op by op.
class Forward {
 public:
  explicit Forward(const ir::Program& main) : p_(main) {
    for (const ir::VarInfo* v : main.vars())
      if (v->is_data || v->persistable) types_.emplace(v->name, known(v->type));
    for (const ir::Op& op : main.ops())
      if (op.role == ir::Role::kForward) add(op);
    for (const ir::Op& op : main.ops())
      if (op.role == ir::Role::kBackward && !is_copy(op)) note_reads(op);
  }

  int ops() const { return static_cast<int>(work_.size()); }
  bool batch_known() const { return batch_known_; }
  const std::vector<Value>& values() const { return values_; }
  double work(int op) const { return work_[static_cast<size_t>(op)]; }

 private:
  ir::TensorType known(ir::TensorType type) {
    for (int d = 0; d < type.shape.rank(); ++d) {
      if (type.shape[d] >= 0) continue;
      type.shape[d] = kExampleBatch;
      batch_known_ = false;
    }
    return type;
  }

  void add(const ir::Op& op) {
    const auto type_of = [&](const std::string& name) -> const ir::TensorType& {
      return types_.at(name);
    };
    const int index = ops();
    try {
      const auto made = ir::infer_types(op, type_of);
      for (size_t s = 0; s < made.size(); ++s)
        for (size_t i = 0; i < made[s].size(); ++i) add_value(op.outputs[s][i], made[s][i], index);
      const ir::Cost cost = ir::cost_of(op, type_of);
      work_.push_back(cost.flops + kFlopsPerByte * cost.bytes);
    } catch (const Error& e) {
      fail(Error::Kind::kInvalidArgument,
           str("recompute: no checkpoints are named, and none can be chosen, because shapes are "
               "not known: ",
               e.what(), ". Name them in recompute_configs['checkpoints']"));
    }
    for (const ir::Names& names : op.inputs)
      for (const std::string& name : names)
        if (Value* v = find(name)) v->last = index;
  }

  void add_value(const std::string& name, const ir::TensorType& type, int index) {
    const bool is_new = types_.emplace(name, type).second;
    if (p_.var(name).persistable || !is_new) return;
    places_.emplace(name, values_.size());
    values_.push_back({name, ir::bytes_of(type), index, index});
  }

  void note_reads(const ir::Op& op) {
    const auto& unread = op.def->shape_only;
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      if (std::find(unread.begin(), unread.end(), op.def->inputs[s].name) != unread.end()) continue;
      for (const std::string& name : op.inputs[s])
        if (Value* v = find(without_suffix(name))) v->waited_for = true;
    }
  }

  Value* find(const std::string& name) {
    const auto it = places_.find(name);
    return it == places_.end() ? nullptr : &values_[it->second];
  }

  const ir::Program& p_;
  std::map<std::string, ir::TensorType> types_;
  std::map<std::string, size_t> places_;
  std::vector<Value> values_;
  std::vector<double> work_;
  bool batch_known_ = true;
};

// Cuts, each named by the op that it stands behind, ascending, and what they mean.
struct Choice {
  std::vector<int> cuts;
  double bytes = 0, work = 0;
};

class Chooser {
 public:
  explicit Chooser(const Forward& f) : f_(f), waiting_(f.ops() + 1), crossing_(f.ops() + 1) {
    for (const Value& v : f.values()) {
      if (v.waited_for) waiting_[at(v.made + 1)] += v.bytes;
      for (int op = v.made; op < v.last; ++op) crossing_[at(op)] += v.bytes;
    }
    for (int op = 0; op < f.ops(); ++op) waiting_[at(op + 1)] += waiting_[at(op)];
    for (int op = 0; op + 1 < f.ops(); ++op)
      if (is_good_cut(op)) places_.push_back(op);
    for (const int place : places_)
      for (size_t v = 0; v < f.values().size(); ++v)
        if (f.values()[v].made <= place && f.values()[v].last > place) across_[place].push_back(v);
  }

  double bytes_before() const { return waiting_.back(); }

  // Cuts after about equal shares of what backward waits for, for any number of shares; and of each
  // the variants that begin to compute again further in front: what comes behind the last cut is
  // not computed again.
  std::vector<Choice> choices() const {
    std::vector<Choice> all;
    std::set<std::vector<int>> seen;
    for (size_t shares = 2; shares <= places_.size() + 1; ++shares) {
      std::vector<int> cuts = balanced(shares);
      while (!cuts.empty() && seen.insert(cuts).second) {
        all.push_back(judged(cuts));
        cuts.pop_back();
      }
    }
    return all;
  }

 private:
  static size_t at(int op) { return static_cast<size_t>(op); }

  // Fewer bytes cross here than at its neighbours.
  bool is_good_cut(int op) const {
    const double here = crossing_[at(op)];
    return here > 0 && (op == 0 || here <= crossing_[at(op - 1)]) && here <= crossing_[at(op + 1)];
  }

  std::vector<int> balanced(size_t shares) const {
    std::vector<int> cuts;
    const double share = bytes_before() / static_cast<double>(shares);
    double begin = 0;
    for (size_t i = 0; i < places_.size(); ++i) {
      const double here = waiting_[at(places_[i] + 1)];
      const double next =
          i + 1 < places_.size() ? waiting_[at(places_[i + 1] + 1)] : bytes_before();
      // Nearer to a share than the next place would be.
      if (here - begin < share / 2 ||
          std::abs(here - begin - share) > std::abs(next - begin - share))
        continue;
      cuts.push_back(places_[i]);
      begin = here;
    }
    return cuts;
  }

  // Backward goes through the stretches from the last one; those behind it are gone by then.
  Choice judged(const std::vector<int>& cuts) const {
    Choice choice{cuts};
    const std::vector<Value>& values = f_.values();  // in the order in which they are made
    std::vector<bool> kept(values.size());
    double of_cuts = 0;
    size_t v = 0;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const int end = i < cuts.size() ? cuts[i] + 1 : f_.ops();
      double in_reach = 0;
      for (; v < values.size() && values[v].made < end; ++v)
        if (values[v].waited_for) in_reach += values[v].bytes;
      choice.bytes = std::max(choice.bytes, of_cuts + in_reach);
      if (i == cuts.size()) break;
      for (const size_t c : across_.at(cuts[i])) {
        if (!kept[c]) of_cuts += values[c].bytes;
        kept[c] = true;
      }
    }
    for (int op = 0; !cuts.empty() && op <= cuts.back(); ++op) choice.work += f_.work(op);
    return choice;
  }

  const Forward& f_;
  std::vector<double> waiting_;   // bytes that backward waits for, of the first n ops
  std::vector<double> crossing_;  // bytes that are made up to this op and read after it
  std::vector<int> places_;       // good cuts
  std::map<int, std::vector<size_t>> across_;  // of each: the values that are kept
};

}  // namespace

Checkpoints choose_checkpoints(const ir::Program& main, std::optional<double> budget) {
  const Forward forward(main);
  check_arg(!budget || forward.batch_known(),
            "recompute: the option 'budget_MB' needs the size of the batch, but data of this "
            "program has a dimension -1; give it, as in paddle.static.data(shape=[32, ...]), or "
            "name the checkpoints");
  const Chooser chooser(forward);
  Checkpoints result{.bytes_before = chooser.bytes_before(), .batch_known = forward.batch_known()};
  result.bytes = result.bytes_before;
  if (budget && result.bytes_before <= *budget) return result;  // nothing need be computed again
  const std::vector<Choice> all = chooser.choices();
  double least = result.bytes_before;
  for (const Choice& c : all) least = std::min(least, c.bytes);
  const double mib = 1 << 20;
  check_arg(!budget || least <= *budget, "recompute: the option 'budget_MB' is ",
            budget ? *budget / mib : 0.0, ", but backward needs at least ", std::ceil(least / mib),
            " MiB of values of forward (", std::ceil(result.bytes_before / mib),
            " without recompute); raise it or take a smaller batch");
  const double limit = budget ? *budget : kSlack * least;
  const Choice* best = nullptr;
  for (const Choice& c : all)
    if (c.bytes <= limit && (best == nullptr || c.work < best->work)) best = &c;
  if (best == nullptr) return result;  // no place to cut
  result.bytes = best->bytes;
  for (const Value& v : forward.values())
    if (std::any_of(best->cuts.begin(), best->cuts.end(),
                    [&](int cut) { return v.made <= cut && v.last > cut; }))
      result.kept.push_back(v.name);
  return result;
}

}  // namespace fleetx::strategies
