// The only way to change a finished Program. Strategies and passes use it; every change gives the
// program a new version, so that cached plans of the old state are not used.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

class Rewriter {
 public:
  using Position = Program::Ops::iterator;

  struct NewOp {
    std::string type;
    std::vector<std::pair<std::string, Names>> inputs = {};  // by slot name
    // Variables that are not there yet are made.
    std::vector<std::pair<std::string, Names>> outputs = {};
    Attrs attrs = {};
    Role role = Role::kForward;
    std::string name = "";
    std::string guard = "";
    Loc loc = {};
    int stage = -1;
  };

  explicit Rewriter(Program& program) : p_(program) {}

  const Program& program() const { return p_; }
  // For walking; change an op only through the functions below.
  Position begin() { return p_.ops_.begin(); }
  Position end() { return p_.ops_.end(); }

  Position insert(Position before, const NewOp& op);
  Position append(const NewOp& op) { return insert(end(), op); }
  // For parsers, which verify the whole program afterwards: the variables must exist, types are not
  // inferred.
  Position append_unchecked(const NewOp& op);
  Position erase(Position op);
  void move(Position op, Position before);

  void set_attr(Position op, const std::string& name, Attr value);
  void set_inputs(Position op, std::string_view slot, Names names);
  void set_outputs(Position op, std::string_view slot, Names names);
  void set_guard(Position op, std::string guard);  // "": the op always runs
  void set_stage(Position op, int stage);
  void rename_inputs(Position op, std::string_view from, std::string_view to);
  // In all ops from `first` on. A gradient that an update is to read is replaced there too.
  void replace_later_uses(Position first, std::string_view from, std::string_view to);

  void add_var(VarInfo info) { p_.add_var(std::move(info)); }
  VarInfo& edit_var(std::string_view name);
  void erase_var(std::string_view name);
  // Drops variables that no op mentions, except data, parameters, what the training part names, and
  // the names in `keep`.
  void drop_unused_vars(const Names& keep = {});
  // `base`, or base_1, base_2, ... if that is taken.
  std::string fresh_name(const std::string& base) const;
  void set_loc(Position op, Loc loc) { op->loc = std::move(loc); }

  // The last op that writes the variable; end() where none does.
  Position last_writer(std::string_view name);
  Position first_of(Role role);  // end() where there is none
  // The op of the update part that writes the parameter; kInvalidArgument where there is none.
  Position update_of(std::string_view parameter);
  Training& edit_training();
  // `gradient` takes the place of the parameter's gradient from now on: updates that come later
  // read it. Unknown parameters are kInvalidArgument.
  void set_gradient(std::string_view parameter, std::string gradient);

 private:
  Op make(const NewOp& op) const;

  Program& p_;
};

}  // namespace fleetx::ir
