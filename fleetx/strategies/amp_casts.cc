#include "fleetx/strategies/amp_casts.h"

#include <algorithm>
#include <optional>

#include "fleetx/ir/divided.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/strategies/half_support.h"

namespace fleetx::strategies {
namespace {

using Position = ir::Rewriter::Position;

// Slots that become 16 bits wide, the best choice first; of ops that are not here, and where no
// choice here is possible, all floats do. Statistics, biases and factors of norms stay f32: they
// are few, and sums go into them. So do weights, where the kernel rounds them as it reads them: no
// cast of them stands in memory, and their gradients are f32.
using Slots = std::set<std::string, std::less<>>;
const std::map<std::string, std::vector<Slots>, std::less<>> kHalfSlots = {
    {"fc", {{"x"}, {"x", "w"}}},
    {"conv2d", {{"x"}, {"x", "w"}}},
    {"conv2d_transpose", {{"x"}, {"x", "w"}}},
    {"attention", {{"q", "k", "v"}}},
    {"batch_norm", {{"x"}}},
    {"layer_norm", {{"x"}}}};

bool is_single(const ir::VarInfo& v) { return v.type.shape.known() && v.type.shape.numel() == 1; }

template <class Fn>
bool any_of(const std::vector<ir::Names>& slots, const Fn& fn) {
  return std::any_of(slots.begin(), slots.end(), [&](const ir::Names& names) {
    return std::any_of(names.begin(), names.end(), fn);
  });
}

class Casts {
 public:
  Casts(ir::Program& main, const AmpCastOptions& options) : rw_(main), p_(main), o_(options) {}

  AmpCastReport run() {
    if (o_.half_parameters) halve_parameters();
    for (const ir::VarInfo* p : p_.parameters())
      if (!p->stop_gradient) trained_.insert(p->name);
    for (Position op = rw_.begin(); op != rw_.end(); ++op) {
      if (op->role != ir::Role::kForward) continue;
      note_outputs(*op, change(op));
    }
    return report_;
  }

 private:
  using DTypes = HalfSupport::DTypes;

  bool is_half(const std::string& name) const { return p_.var(name).type.dtype == o_.half; }

  // Those that only ops in 16 bits read, and not norms.
  void halve_parameters() {
    std::map<std::string, bool, std::less<>> possible;
    for (const ir::Op& op : p_.ops()) {
      const auto slots = kHalfSlots.find(op.type());
      const bool norm = slots != kHalfSlots.end() && !slots->second.back().contains("w");
      const bool fits = op.role == ir::Role::kForward && wish(op) == AmpList::kWhite && !norm;
      for (const ir::Names& names : op.inputs)
        for (const std::string& name : names) {
          const ir::VarInfo& v = p_.var(name);
          if (!v.is_parameter || v.type.dtype != f32) continue;
          const auto [it, is_new] = possible.emplace(name, fits);
          it->second = it->second && fits;
        }
    }
    for (const auto& [name, yes] : possible) {
      if (!yes) continue;
      rw_.edit_var(name).type.dtype = o_.half;
      report_.parameters.push_back(name);
    }
  }

  // Returns the list that the op counts as now; gray: unchanged, no influence on its readers.
  AmpList change(Position op) {
    const auto castable = [&](const std::string& name) {
      const DType dtype = p_.var(name).type.dtype;
      return dtype == f32 || dtype == o_.half;
    };
    if (op->type() == "cast" || !any_of(op->inputs, castable)) return AmpList::kGray;
    AmpList color = wish(*op);
    if (color == AmpList::kWhite) {
      if (const auto types = half_types(*op)) {
        to_half(op, *types);
        return color;
      }
      ++report_.no_kernel[op->type()];
      color = AmpList::kGray;
    }
    to_f32(op);
    return color;
  }

  AmpList wish(const ir::Op& op) const {
    const auto named = [&](const std::string& name) { return o_.black_vars.contains(name); };
    if (any_of(op.inputs, named) || any_of(op.outputs, named)) return AmpList::kBlack;
    // One number is not worth a rounding: losses, learning rates.
    if (!any_of(op.outputs, [&](const std::string& name) { return !is_single(p_.var(name)); }))
      return AmpList::kBlack;
    if (o_.pure) return pure_wish(op);
    if (o_.lists.is_table(op.type())) return AmpList::kGray;
    const AmpList color = o_.lists.of(op.type());
    if (color != AmpList::kGray) return color;
    const auto is = [&](AmpList wanted) {
      return any_of(op.inputs, [&](const std::string& name) {
        const auto it = color_.find(name);
        return it != color_.end() && it->second == wanted;
      });
    };
    if (is(AmpList::kBlack)) return AmpList::kBlack;
    return is(AmpList::kWhite) ? AmpList::kWhite : AmpList::kGray;
  }

  AmpList pure_wish(const ir::Op& op) const {
    const auto inside = [&](const std::string& name) { return o_.guarded.contains(name); };
    if (!o_.guarded.empty() && !any_of(op.outputs, inside)) return AmpList::kBlack;
    return o_.lists.is_named_black(op.type()) ? AmpList::kBlack : AmpList::kWhite;
  }

  struct Types {
    DTypes inputs, outputs;
  };

  // What its inputs and outputs become; nothing where no choice is possible.
  std::optional<Types> half_types(const ir::Op& op) {
    const auto choices = kHalfSlots.find(op.type());
    const bool half_weights = choices != kHalfSlots.end() && choices->second.back().contains("w") &&
                              is_half(op.in("w").front());
    if (choices != kHalfSlots.end() && !half_weights)
      for (const Slots& slots : choices->second)
        if (auto types = half_types(op, &slots)) return types;
    return half_types(op, nullptr);
  }

  std::optional<Types> half_types(const ir::Op& op, const Slots* slots) {
    Types types{.inputs = DTypes(op.inputs.size()), .outputs = {}};
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      const bool half = slots == nullptr || slots->contains(op.def->inputs[s].name);
      for (const std::string& name : op.inputs[s]) {
        const DType dtype = p_.var(name).type.dtype;
        const bool castable = dtype == f32 || dtype == o_.half;
        types.inputs[s].push_back(!castable ? dtype : half ? o_.half : f32);
      }
    }
    const DTypes* outputs = support_.outputs(
        p_, op, types.inputs, [&](const std::string& n) { return trained_.contains(n); });
    // What lives longer than a step keeps its type.
    const auto changes = [](const ir::VarInfo& v, DType dtype) {
      return v.persistable && v.type.dtype != dtype;
    };
    if (outputs == nullptr || any_output(op, *outputs, changes)) return std::nullopt;
    types.outputs = *outputs;
    return types;
  }

  template <class Fn>
  bool any_output(const ir::Op& op, const DTypes& dtypes, const Fn& fn) const {
    for (size_t s = 0; s < op.outputs.size(); ++s)
      for (size_t i = 0; i < op.outputs[s].size(); ++i)
        if (fn(p_.var(op.outputs[s][i]), dtypes[s][i])) return true;
    return false;
  }

  void to_half(Position op, const Types& types) {
    set_inputs(op, types.inputs);
    for (size_t s = 0; s < op->outputs.size(); ++s)
      for (size_t i = 0; i < op->outputs[s].size(); ++i)
        rw_.edit_var(op->outputs[s][i]).type.dtype = types.outputs[s][i];
    ++report_.half[op->type()];
  }

  void to_f32(Position op) {
    if (!any_of(op->inputs, [&](const std::string& name) { return is_half(name); })) return;
    DTypes inputs(op->inputs.size());
    for (size_t s = 0; s < op->inputs.size(); ++s) {
      const auto& unread = op->def->shape_only;
      const bool shape_only =
          std::find(unread.begin(), unread.end(), op->def->inputs[s].name) != unread.end();
      for (const std::string& name : op->inputs[s]) {
        const DType dtype = p_.var(name).type.dtype;
        inputs[s].push_back(dtype == o_.half && !shape_only ? f32 : dtype);
      }
    }
    // An output that takes its type from an input whose shape alone is read stays f32, too.
    const DTypes* outputs =
        support_.outputs(p_, *op, inputs, [](const std::string&) { return false; });
    const auto changes = [](const ir::VarInfo& v, DType dtype) { return v.type.dtype != dtype; };
    if (outputs == nullptr || any_output(*op, *outputs, changes))
      for (auto& slot : inputs) std::replace(slot.begin(), slot.end(), o_.half, f32);
    set_inputs(op, inputs);
  }

  void set_inputs(Position op, const DTypes& inputs) {
    for (size_t s = 0; s < op->inputs.size(); ++s) {
      ir::Names names = op->inputs[s];
      for (size_t i = 0; i < names.size(); ++i)
        if (p_.var(names[i]).type.dtype != inputs[s][i])
          names[i] = cast(op, names[i], inputs[s][i]);
      if (names != op->inputs[s]) rw_.set_inputs(op, op->def->inputs[s].name, names);
    }
  }

  std::string cast(Position before, const std::string& var, DType dtype) {
    const auto known = casts_.find({var, dtype});
    if (known != casts_.end()) return known->second;
    std::string suffix(name_of(dtype));
    std::transform(suffix.begin(), suffix.end(), suffix.begin(), ::toupper);
    const std::string name = rw_.fresh_name(var + "@" + suffix);
    const auto guard = guards_.find(var);
    rw_.insert(before, {.type = "cast",
                        .inputs = {{"x", {var}}},
                        .outputs = {{"out", {name}}},
                        .attrs = {{"dtype", dtype}},
                        .name = before->name,
                        .guard = guard == guards_.end() ? "" : guard->second,
                        .loc = before->loc});
    rw_.edit_var(name).stop_gradient = p_.var(var).stop_gradient;
    if (trained_.contains(var)) trained_.insert(name);
    ++report_.casts;
    return casts_[{var, dtype}] = name;
  }

  void note_outputs(const ir::Op& op, AmpList color) {
    const bool trained = op.def->grad != nullptr && any_of(op.inputs, [&](const std::string& n) {
                           return trained_.contains(n);
                         });
    for (const ir::Names& names : op.outputs) {
      for (const std::string& name : names) {
        // A variable that is written again has another value; its casts are of the old one.
        for (const DType dtype : {f32, o_.half}) casts_.erase({name, dtype});
        color_[name] = color;
        if (op.guard.empty())
          guards_.erase(name);
        else if (!p_.var(name).persistable)
          guards_[name] = op.guard;
        const ir::VarInfo& v = p_.var(name);
        if (trained && is_float(v.type.dtype) && !v.stop_gradient && !v.persistable)
          trained_.insert(name);
      }
    }
  }

  ir::Rewriter rw_;
  const ir::Program& p_;
  const AmpCastOptions& o_;
  HalfSupport support_;
  std::map<std::string, AmpList, std::less<>> color_;  // of the op that wrote a variable last
  std::map<std::pair<std::string, DType>, std::string> casts_;
  std::map<std::string, std::string> guards_;   // of variables that exist under a guard only
  std::set<std::string, std::less<>> trained_;  // variables that get a gradient
  AmpCastReport report_;
};

}  // namespace

AmpCastReport insert_casts(ir::Program& main, const AmpCastOptions& options) {
  return Casts(main, options).run();
}

void read_as_f32(ir::Program& program, const ir::Names& parameters, DType half) {
  ir::Rewriter rw(program);
  for (const std::string& name : parameters) {
    if (program.find(name) == nullptr || program.var(name).type.dtype == half) continue;
    rw.edit_var(name).type.dtype = half;
    const std::string full = rw.fresh_name(name + "@F32");
    const Position op = rw.insert(rw.begin(), {.type = "cast",
                                               .inputs = {{"x", {name}}},
                                               .outputs = {{"out", {full}}},
                                               .attrs = {{"dtype", f32}}});
    rw.replace_later_uses(std::next(op), name, full);
  }
}

void round_first_values(ir::Program& startup, const ir::Names& parameters, DType half) {
  ir::Rewriter rw(startup);
  for (const std::string& name : parameters) {
    if (startup.find(name) == nullptr) continue;
    // With this name it is drawn as without amp.
    const std::string full = rw.fresh_name(name + std::string(ir::kWholeSuffix));
    ir::VarInfo info;
    info.name = full;
    info.type = startup.var(name).type;
    rw.add_var(info);
    rw.edit_var(name).type.dtype = half;
    const Position op = rw.last_writer(name);
    for (size_t s = 0; s < op->outputs.size(); ++s) {
      ir::Names names = op->outputs[s];
      std::replace(names.begin(), names.end(), name, full);
      rw.set_outputs(op, op->def->outputs[s].name, names);
    }
    rw.insert(std::next(op), {.type = "cast",
                              .inputs = {{"x", {full}}},
                              .outputs = {{"out", {name}}},
                              .attrs = {{"dtype", half}}});
  }
}

}  // namespace fleetx::strategies
