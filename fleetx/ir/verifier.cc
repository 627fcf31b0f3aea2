#include "fleetx/ir/verifier.h"

#include <map>
#include <set>

#include "fleetx/base/names.h"
#include "fleetx/ir/infer.h"
#include "fleetx/ir/owned.h"
#include "fleetx/ir/uniform.h"

namespace fleetx::ir {
namespace {

// A dimension that was given as known must be what infer says; an unknown one on either side fits
// anything.
bool fits(const TensorType& declared, const TensorType& inferred) {
  if (declared.dtype != inferred.dtype || declared.kind != inferred.kind) return false;
  if (declared.shape.rank() != inferred.shape.rank()) return false;
  for (int d = 0; d < declared.shape.rank(); ++d)
    if (declared.shape[d] >= 0 && inferred.shape[d] >= 0 && declared.shape[d] != inferred.shape[d])
      return false;
  return true;
}

bool is_utf8(const Attrs& attrs) {
  for (const auto& [key, attr] : attrs) {
    if (!fleetx::is_utf8(key)) return false;
    if (attr.type() == AttrType::kString && !fleetx::is_utf8(attr.as<std::string>())) return false;
    if (attr.type() == AttrType::kStrings)
      for (const std::string& text : attr.as<Strings>())
        if (!fleetx::is_utf8(text)) return false;
  }
  return true;
}

// describe(op), written only where there is something to say: a program is verified after every
// pass.
struct At {
  const Op& op;
};
std::ostream& operator<<(std::ostream& out, const At& at) { return out << describe(at.op); }

class Verifier {
 public:
  Verifier(const Program& program, std::string_view stage) : p_(program), stage_(stage) {}

  void run() {
    for (const VarInfo* v : p_.vars()) {
      check(fleetx::is_utf8(v->name) && is_utf8(v->attrs), "variable '", v->name,
            "': its name or an attribute is not UTF-8");
      check(!v->is_parameter || v->persistable, "parameter '", v->name, "' is not persistable");
      for (const int64_t d : v->type.shape)
        check(d >= -1, "variable '", v->name, "' has the dimension ", d, " in ", v->type);
      check(v->type.kind == VarKind::kDense || v->type.shape.rank() >= 1, "variable '", v->name,
            "' is sparse but has no dimension");
      verify_placement(*v);
      if (!v->attrs.empty()) verify_owner(*v);
      if (v->is_data || v->persistable) defined_.insert(v->name);
    }
    for (const Op& op : p_.ops()) verify_op(op);
    verify_guarded_collectives();
    if (!p_.training().empty()) verify_training(p_.training());
  }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... message) const {
    if (!ok)
      fail(Error::Kind::kInvalidArgument, str(stage_, stage_.empty() ? "" : ": ", message...));
  }

  void verify_owner(const VarInfo& v) const {
    const std::string error = owner_error(v);
    check(error.empty(), "variable '", v.name, "' ", error);
  }

  void verify_placement(const VarInfo& v) const {
    const Placement& p = v.placement;
    if (p.is_replicated()) return;
    check(v.persistable, "variable '", v.name, "' is ", p, ", but not persistable");
    check(p.is_transient() || !p.axis.empty(), "variable '", v.name, "' is ", p,
          ": the axis has no name");
    check(!p.is_sharded() || (p.dim >= 0 && p.dim < v.type.shape.rank()), "variable '", v.name,
          "' is ", p, ", but ", v.type, " has no dimension ", p.dim);
    check(!p.is_transient() || !v.is_parameter, "parameter '", v.name,
          "' is transient: it would not be saved");
  }

  // A guard is bool[1], and has the same value for all ops under it.
  void verify_guard(const Op& op) {
    if (op.guard.empty()) return;
    const VarInfo* guard = p_.find(op.guard);
    check(guard != nullptr, At{op}, "its guard is the variable '", op.guard,
          "', which the program does not have");
    check(guard->type.dtype == DType::kBool && guard->type.shape == Shape{1} &&
              guard->type.kind == VarKind::kDense,
          At{op}, "its guard '", op.guard, "' is ", guard->type, "; a guard must be bool[1]");
    check(defined_.contains(op.guard), At{op}, "its guard '", op.guard,
          "' is read before any op has written it");
    // Where the op that computes it is skipped, it has no value, neither true nor false.
    const auto computed = guarded_.find(op.guard);
    check(computed == guarded_.end(), At{op}, "its guard '", op.guard, "' is computed only where '",
          computed == guarded_.end() ? "" : computed->second,
          "' is true, so that it has no value in other steps. Compute it in every step "
          "(logical_and of both), or keep it in a persistable variable");
    guards_.insert(op.guard);
  }

  // What is computed under a guard exists only there.
  void verify_read_under_guard(const Op& op, const std::string& name) const {
    const auto it = guarded_.find(name);
    check(it == guarded_.end() || it->second == op.guard, At{op}, "reads '", name,
          "', which is computed only where '", it == guarded_.end() ? "" : it->second,
          "' is true; this op ",
          op.guard.empty() ? "has no guard" : "has the guard '" + op.guard + "'",
          ". Give it the same guard, or keep the value in a persistable variable");
  }

  // A rank that skips a collective which others run would leave them waiting.
  void verify_guarded_collectives() const {
    std::set<std::string> groups;
    for (const Op& op : p_.ops())
      if (!op.guard.empty() && is_collective(op)) groups.insert(op.attr<std::string>("group"));
    for (const std::string& group : groups)
      Uniform(p_, group).walk([&](const Op& op, const auto& uniform) {
        if (op.guard.empty() || !is_collective(op) || op.attr<std::string>("group") != group)
          return;
        check(uniform.contains(op.guard), At{op}, "its guard '", op.guard,
              "' may differ between the ranks of the group '", group,
              "', and those that skip it would leave the others waiting; compute the guard from "
              "replicated state, or all_reduce what it depends on");
      });
  }

  void verify_training(const Training& t) const {
    const auto need = [&](const std::string& name, const char* what) -> const VarInfo& {
      const VarInfo* v = p_.find(name);
      check(v != nullptr, "training: the ", what, " is the variable '", name,
            "', which the program does not have");
      return *v;
    };
    const VarInfo& loss = need(t.loss, "loss");
    check(is_float(loss.type.dtype) && loss.type.shape.numel() == 1, "training: the loss '", t.loss,
          "' is ", loss.type, "; it must be one float");
    const VarInfo& seed = need(t.seed, "gradient that backward begins with");
    check(seed.type == loss.type, "training: '", t.seed, "' is ", seed.type, ", the loss '", t.loss,
          "' is ", loss.type);
    size_t seeds = 0;
    for (const Op& op : p_.ops()) seeds += op.writes(t.seed) ? 1 : 0;
    check(seeds == 1, "training: ", seeds, " ops write '", t.seed,
          "', with which backward begins; it must be one");
    if (!t.step.empty()) {
      const VarInfo& step = need(t.step, "step");
      check(step.type.dtype == DType::kI64 && step.type.shape == Shape{1} && step.persistable,
            "training: the step '", t.step, "' is ", step.type, "; it must be state, i64[1]");
    }
    if (!t.ready.empty()) {
      const VarInfo& ready = need(t.ready, "flag of steps that are applied");
      check(ready.type.dtype == DType::kBool && ready.type.shape == Shape{1}, "training: '",
            t.ready, "', which says whether gradients are applied, is ", ready.type,
            "; it must be bool[1]");
      check(defined_.contains(t.ready), "training: no op computes '", t.ready,
            "', which says whether gradients are applied");
    }
    std::set<std::string_view> updated, seen;
    for (const Op& op : p_.ops())
      if (op.role == Role::kUpdate)
        for (const Names& names : op.outputs) updated.insert(names.begin(), names.end());
    for (const Training::Parameter& p : t.parameters) {
      const VarInfo& param = need(p.name, "parameter");
      const VarInfo& gradient = need(p.gradient, "gradient");
      check(param.is_parameter, "training: '", p.name, "' is not a parameter");
      check(seen.insert(p.name).second, "training: the parameter '", p.name,
            "' stands there twice");
      check(gradient.type.shape == param.type.shape, "training: the gradient '", p.gradient,
            "' is ", gradient.type, ", its parameter '", p.name, "' is ", param.type);
      check(defined_.contains(p.gradient), "training: no op computes '", p.gradient,
            "', the gradient of '", p.name, "'");
      if (p.learning_rate.empty()) continue;
      const VarInfo& lr = need(p.learning_rate, "learning rate");
      check(lr.type.dtype == DType::kF32 && lr.type.shape == Shape{1},
            "training: the learning rate '", p.learning_rate, "' is ", lr.type,
            "; it must be f32[1]");
      check(updated.contains(p.name), "training: the parameter '", p.name,
            "' has the learning rate '", p.learning_rate, "', but no op updates it");
    }
  }

  void check_arity(const Op& op, const std::vector<SlotDef>& defs, const std::vector<Names>& slots,
                   const char* what) const {
    for (size_t s = 0; s < defs.size(); ++s) {
      const size_t n = slots[s].size();
      check(n > 0 || defs[s].arity == Arity::kOptional ||
                (defs[s].arity == Arity::kMany && slots.data() == op.outputs.data()),
            At{op}, what, " '", defs[s].name, "' must be given");
      check(n <= 1 || defs[s].arity == Arity::kMany, At{op}, what, " '", defs[s].name,
            "' takes one variable, has ", n);
    }
  }

  void verify_op(const Op& op) {
    check(fleetx::is_utf8(op.name) && fleetx::is_utf8(op.loc.file) && is_utf8(op.attrs), At{op},
          "its name, file or an attribute is not UTF-8");
    check_arity(op, op.def->inputs, op.inputs, "input");
    check_arity(op, op.def->outputs, op.outputs, "output");
    for (size_t s = 0; s < op.inputs.size(); ++s) {
      for (const std::string& name : op.inputs[s]) {
        check(p_.find(name) != nullptr, At{op}, "input '", op.def->inputs[s].name,
              "' is the variable '", name, "', which the program does not have");
        check(defined_.contains(name), At{op}, "reads '", name, "' before any op has written it");
        if (!guarded_.empty()) verify_read_under_guard(op, name);
      }
    }
    verify_guard(op);
    Attrs attrs = op.attrs;
    normalize_attrs(*op.def, attrs, str(stage_, stage_.empty() ? "" : ": ", describe(op)));
    verify_outputs(op);
  }

  void verify_outputs(const Op& op) {
    for (size_t s = 0; s < op.outputs.size(); ++s)
      for (const std::string& name : op.outputs[s])
        check(p_.find(name) != nullptr, At{op}, "output '", op.def->outputs[s].name,
              "' is the variable '", name, "', which the program does not have");
    const auto types = infer_types(
        op, [&](const std::string& name) -> const TensorType& { return p_.var(name).type; });
    for (size_t s = 0; s < op.outputs.size(); ++s) {
      for (size_t i = 0; i < op.outputs[s].size(); ++i) {
        const VarInfo& v = p_.var(op.outputs[s][i]);
        check(fits(v.type, types[s][i]), At{op}, "output '", op.def->outputs[s].name, "' is ",
              types[s][i], ", but '", v.name, "' is declared ", v.type);
        check(!v.is_data, At{op}, "writes '", v.name, "', which is fed by the user");
        // A temporary has one value; only an op that updates it in place may write it again.
        check(v.persistable || !defined_.contains(v.name) || op.reads(v.name), At{op}, "writes '",
              v.name, "', which another op has already written");
        check(
            !guards_.contains(v.name), At{op}, "writes '", v.name,
            "', which is the guard of an op before it; a guard keeps its value for the whole step");
        if (!op.guard.empty() && !v.persistable) guarded_.emplace(v.name, op.guard);
        defined_.insert(v.name);
      }
    }
  }

  const Program& p_;
  std::string_view stage_;
  std::set<std::string, std::less<>> defined_;
  std::set<std::string, std::less<>> guards_;   // of the ops so far
  std::map<std::string, std::string> guarded_;  // temporaries that exist under a guard only
};

thread_local int unverified = 0;  // how many Unverified this thread has

}  // namespace

Unverified::Unverified() { ++unverified; }
Unverified::~Unverified() { --unverified; }

void verify(const Program& program, std::string_view stage) {
  if (unverified == 0) Verifier(program, stage).run();
}

}  // namespace fleetx::ir
