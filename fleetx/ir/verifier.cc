#include "fleetx/ir/verifier.h"

#include <set>

#include "fleetx/base/names.h"
#include "fleetx/ir/infer.h"

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
      if (v->is_data || v->persistable) defined_.insert(v->name);
    }
    for (const Op& op : p_.ops()) verify_op(op);
  }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... message) const {
    if (!ok)
      fail(Error::Kind::kInvalidArgument, str(stage_, stage_.empty() ? "" : ": ", message...));
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
      }
    }
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
        defined_.insert(v.name);
      }
    }
  }

  const Program& p_;
  std::string_view stage_;
  std::set<std::string, std::less<>> defined_;
};

}  // namespace

void verify(const Program& program, std::string_view stage) { Verifier(program, stage).run(); }

}  // namespace fleetx::ir
