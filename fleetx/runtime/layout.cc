// Layouts flow: a kernel says which layouts it wants and makes; reorders stand only where two
// kernels differ. A variable of the scope that is row-major moves, once, into the layout that its
// first reader wants.
//
// Under a guard: what is made for an op that may be skipped (reorders of its inputs, write-backs)
// is skipped with it, and copies made so serve only ops under the same guard.
#include <algorithm>

#include "fleetx/ir/infer.h"
#include "fleetx/kernel/group.h"
#include "fleetx/kernel/reorder.h"
#include "fleetx/runtime/phases.h"

namespace fleetx::runtime {
namespace {

using ir::Names;
using ir::Op;
using kernel::Desc;

struct Copy {
  int value;
  int guard;  // under which it is made
};

// Where a variable is now: its main value, and copies in other layouts.
struct Place {
  int home = -1;
  std::vector<Copy> copies;
};

class LayoutPhase {
 public:
  explicit LayoutPhase(Planning& p) : p_(p), plan_(p.plan) {}

  void run() {
    for (const Op& op : plan_.program.ops()) prepare(op);
    for (const std::string& name : p_.fetch) fetch(name);
  }

 private:
  int next_step() const { return static_cast<int>(plan_.steps.size()); }
  Desc& desc_of(int value) { return plan_.value(value).desc; }

  // ---- values and where they are ----
  const ir::TensorType& type_of(const std::string& name) {
    const auto it = p_.types.find(name);
    if (it != p_.types.end()) return it->second;
    const ir::VarInfo& v = plan_.program.var(name);
    FLEETX_CHECK(v.persistable || v.is_data, "no type for '", name, "'");
    check_arg(!v.is_data, "feed '", name, "' is missing: the program needs ", v.type);
    check_arg(v.type.shape.known(), "the persistable variable '", name,
              "' has an unknown dimension: ", v.type);
    return p_.types.emplace(name, v.type).first->second;
  }

  // Before the step, where bind finds a wrong or missing one.
  Layout layout_in_scope(const std::string& name, const ir::TensorType& type) const {
    const Tensor* tensor = p_.options.scope == nullptr ? nullptr : p_.options.scope->find(name);
    const bool fits =
        tensor != nullptr && tensor->dtype() == type.dtype && tensor->shape() == type.shape;
    return fits ? tensor->layout() : Layout::plain();
  }

  // The main value of a variable; made at its first use if it is fed or lives in the scope.
  // `needed_by`: who reads it, "" for a writer.
  int home_of(const std::string& name, const std::string& needed_by) {
    const auto it = places_.find(name);
    if (it != places_.end()) return it->second.home;
    const ir::VarInfo& v = plan_.program.var(name);
    const ir::TensorType& type = type_of(name);
    Desc desc{type.dtype, type.shape, Layout::plain(), type.kind, type.rows};
    Storage storage;
    storage.var = name;
    if (v.persistable) {
      storage.region = Region::kScope;
      storage.needed_by = needed_by;
      desc.layout = layout_in_scope(name, type);
    } else {
      FLEETX_CHECK(v.is_data, "'", name, "' is read before it is written");
      storage.region = Region::kFeed;
    }
    const int value = add_value(name, desc, storage);
    places_[name] = {value, {}};
    return value;
  }

  int add_value(const std::string& name, const Desc& desc, Storage storage) {
    storage.block.bytes = desc.bytes();
    storage.block.first = next_step();
    storage.block.last = storage.block.first;
    plan_.storages.push_back(std::move(storage));
    plan_.values.push_back({name, desc, static_cast<int>(plan_.storages.size()) - 1});
    used_.push_back(false);
    return static_cast<int>(plan_.values.size()) - 1;
  }

  void use(int value, int step) {
    used_[static_cast<size_t>(value)] = true;
    Block& block = plan_.storage_of(value).block;
    block.last = std::max(block.last, step);
  }

  // A variable of the scope may still choose its layout if it is row-major and nothing in this plan
  // touched it.
  bool can_move(int value) {
    return plan_.storage_of(value).region == Region::kScope && desc_of(value).layout.is_plain() &&
           !used_[static_cast<size_t>(value)] && !p_.skips("layout");
  }

  void move_home(int value, const Layout& layout) {
    desc_of(value).layout = layout;
    plan_.storage_of(value).block.bytes = desc_of(value).bytes();
  }

  int value_in_layout(const std::string& name, const Layout& wanted) {
    Place& place = places_.at(name);
    if (desc_of(place.home).layout == wanted) return place.home;
    for (const Copy& copy : place.copies)
      if (desc_of(copy.value).layout == wanted && (copy.guard == kNoGuard || copy.guard == guard_))
        return copy.value;
    if (can_move(place.home)) {
      move_home(place.home, wanted);
      return place.home;
    }
    Desc desc = desc_of(place.home);
    desc.layout = wanted;
    const int copy = add_value(name, desc, {});
    add_reorder(place.home, copy);
    place.copies.push_back({copy, guard_});
    return copy;
  }

  int output_value(const Op& op, const std::string& name, const Desc& desc,
                   std::vector<std::pair<int, int>>& write_back) {
    const bool persistable = plan_.program.var(name).persistable;
    const auto old = places_.find(name);
    if (!persistable && !op.guard.empty()) guards_[name] = op.guard;
    if (persistable || (old != places_.end() && op.reads(name))) {
      const int home = home_of(name, "");
      places_.at(name).copies.clear();  // they hold the old content
      if (desc_of(home).layout == desc.layout) return home;
      if (can_move(home)) {
        move_home(home, desc.layout);
        return home;
      }
      const int made = add_value(name, desc, {});
      write_back.emplace_back(made, home);
      return made;
    }
    FLEETX_CHECK(old == places_.end(), ir::describe(op), "'", name, "' is written twice");
    const int value = add_value(name, desc, {});
    places_[name] = {value, {}};
    return value;
  }

  // ---- steps ----
  void prepare(const Op& op) {
    role_ = op.role;
    Step step;
    step.label = op.type();
    step.description = ir::describe(op);
    step.role = op.role;
    step.guard = guard_ = guard_of(op, step.description);
    const auto types = [&](const std::string& name) -> const ir::TensorType& {
      return type_of(name);
    };
    std::vector<Desc> ins;
    for (const Names& names : op.inputs)
      for (const std::string& name : names) ins.push_back(desc_of(home_of(name, step.description)));
    const std::vector<Desc> outs =
        describe_outputs(op, step.description, ir::infer_types(op, types));
    check_arg(op.def->make_kernel != nullptr, step.description, "has no kernel");
    kernel::Prepare prepare(op, std::move(ins), outs, p_.setting);
    step.kernel = op.def->make_kernel(prepare);
    step.cost = ir::cost_of(op, types);
    if (const ir::Communication& c = step.cost.communication; c.kind != ir::CommKind::kNone) {
      const int ranks = prepare.group(c.group).size();
      plan_.groups[c.group] = ranks;
      step.wire_bytes = ir::wire_bytes(c, ranks);
    }
    add_step(op, prepare, std::move(step), outs);
  }

  // The guard's value; read before everything that is made for the op.
  int guard_of(const Op& op, const std::string& description) {
    guard_ = kNoGuard;
    if (op.guard.empty()) return kNoGuard;
    (void)home_of(op.guard, description);
    return value_in_layout(op.guard, Layout::plain());
  }

  std::vector<Desc> describe_outputs(const Op& op, const std::string& description,
                                     const std::vector<std::vector<ir::TensorType>>& types) {
    // An op that may be skipped leaves what was there.
    const std::string needed_by = op.guard.empty() ? "" : description;
    std::vector<Desc> outs;
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      for (size_t i = 0; i < op.outputs[s].size(); ++i) {
        const std::string& name = op.outputs[s][i];
        const ir::TensorType& type = types[s][i];
        Desc desc{type.dtype, type.shape, Layout::plain(), type.kind, type.rows};
        if (plan_.program.var(name).persistable) {
          check_arg(type_of(name) == type, description, "writes ", type, " into '", name,
                    "', which is ", type_of(name));
          desc.layout = desc_of(home_of(name, needed_by)).layout;
        }
        p_.types.insert_or_assign(name, type);
        outs.push_back(desc);
      }
    }
    return outs;
  }

  void add_step(const Op& op, const kernel::Prepare& prepare, Step step,
                const std::vector<Desc>& outs) {
    const std::vector<int> read = add_inputs(op, prepare, step);
    const int at = next_step();  // after the reorders of its inputs
    for (const int value : read) use(value, at);
    if (step.guard != kNoGuard) use(step.guard, at);

    std::vector<std::pair<int, int>> write_back;  // (value made, home in the scope)
    size_t position = 0;
    for (const Names& names : op.outputs) {
      for (const std::string& name : names) {
        Desc desc = outs[position];
        desc.layout = prepare.made_layouts()[position++];
        step.outputs.push_back(output_value(op, name, desc, write_back));
        use(step.outputs.back(), at);
      }
    }
    for (const size_t bytes : prepare.scratch_bytes()) {
      Storage storage;
      storage.block = {bytes, at, at, 0};
      plan_.storages.push_back(storage);
      step.scratch.push_back(static_cast<int>(plan_.storages.size()) - 1);
    }
    for (const kernel::Bucket& bucket : prepare.buckets()) p_.buckets.push_back({at, bucket});
    plan_.steps.push_back(std::move(step));
    p_.ops.emplace_back(at, &op);
    for (const auto& [made, home] : write_back) add_reorder(made, home);
  }

  // Returns the values whose content the kernel reads.
  std::vector<int> add_inputs(const Op& op, const kernel::Prepare& prepare, Step& step) {
    size_t position = 0;
    std::vector<int> read;
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      const auto& unread = op.def->shape_only;
      const bool shape_only =
          std::find(unread.begin(), unread.end(), op.def->inputs[s].name) != unread.end();
      for (const std::string& name : op.inputs[s]) {
        const Layout& wanted = prepare.wanted_layouts()[position++];
        step.inputs.push_back(shape_only ? places_.at(name).home : value_in_layout(name, wanted));
        if (!shape_only) read.push_back(step.inputs.back());
        if (op.def->inputs[s].name == "ticket") step.ticket = step.inputs.back();
      }
    }
    return read;
  }

  void add_reorder(int from, int to) {
    Step step;
    step.label = "reorder";
    step.description = str("reorder '", plan_.value(from).var, "': ");
    step.kernel = kernel::make_reorder(desc_of(from), desc_of(to));
    step.inputs = {from};
    step.outputs = {to};
    step.role = role_;
    step.guard = guard_;
    step.cost.bytes = static_cast<double>(desc_of(from).bytes() + desc_of(to).bytes());
    const int at = next_step();
    Block& block = plan_.storage_of(to).block;
    block.first = std::min(block.first, at);
    use(from, at);
    use(to, at);
    if (step.guard != kNoGuard) use(step.guard, at);
    plan_.steps.push_back(std::move(step));
  }

  void fetch(const std::string& name) {
    const ir::VarInfo& info = fetched_var(p_, name);
    const Scope* scope = p_.options.scope;
    const bool in_scope = info.persistable && (scope == nullptr || scope->has(name));
    check_arg(places_.contains(name) || p_.types.contains(name) || in_scope, "fetch '", name,
              "': no op of this program computes it",
              info.persistable ? " and it is not in the scope" : "");
    const auto guard = guards_.find(name);
    check_arg(guard == guards_.end(), "fetch '", name, "': it is computed only in steps in which '",
              guard == guards_.end() ? "" : guard->second,
              "' is true; keep it in a persistable variable, and fetch that");
    const int value = home_of(name, str("fetch '", name, "': "));
    plan_.fetches.push_back({name, value});
    use(value, next_step());
  }

  Planning& p_;
  PlannedProgram& plan_;
  std::map<std::string, Place> places_;
  std::map<std::string, std::string> guards_;  // of temporaries that exist under one only
  ir::Role role_ = ir::Role::kForward;         // of the op that is being prepared
  int guard_ = kNoGuard;                       // the same
  std::vector<bool> used_;                     // per value
};

}  // namespace

void choose_layouts(Planning& p) { LayoutPhase(p).run(); }

}  // namespace fleetx::runtime
