// Builds programs. A Var is the handle that users hold; layers in nn/ and optimizers in optim/ are
// functions over them.
//
//   Program main, startup;
//   Builder b(main, startup);
//   Var x = b.data("x", f32, {-1, 784});
//   Var y = b.op("scale", {{"x", x}}, {{"scale", 2.0}});
//
// Every op is checked at once, so that an error points at the user's own line. Not thread-safe.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fleetx/ir/program.h"

namespace fleetx::ir {

class Builder;

class Var {
 public:
  Var() = default;
  Var(Builder* builder, std::string name) : builder_(builder), name_(std::move(name)) {}

  bool defined() const { return builder_ != nullptr; }
  const std::string& name() const { return name_; }
  Builder& builder() const;  // kInternal for an undefined handle
  const VarInfo& info() const;
  const TensorType& type() const { return info().type; }
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }

  Var& stop_gradient(bool stop = true);

 private:
  Builder* builder_ = nullptr;
  std::string name_;
};

// {"x", var} or {"xs", {a, b}}; an undefined Var means: left out.
struct Arg {
  Arg(std::string slot_name, Var var) : slot(std::move(slot_name)) {
    if (var.defined()) vars.push_back(std::move(var));
  }
  Arg(std::string slot_name, std::vector<Var> list)
      : slot(std::move(slot_name)), vars(std::move(list)) {}

  std::string slot;
  std::vector<Var> vars;
};

// Where outputs go: {"y", "name"} for a new variable of that name (or an existing one that is
// overwritten).
struct Dest {
  Dest(std::string slot_name, std::string name)
      : slot(std::move(slot_name)), names{std::move(name)} {}
  Dest(std::string slot_name, const Var& var) : slot(std::move(slot_name)), names{var.name()} {}
  Dest(std::string slot_name, Names list) : slot(std::move(slot_name)), names(std::move(list)) {}

  std::string slot;
  Names names;
};

// The outputs of one op; converts to its first one.
class Results {
 public:
  Results(Builder* builder, const Op* op) : builder_(builder), op_(op) {}
  operator Var() const;  // NOLINT: most ops have one output
  Var operator[](std::string_view slot) const;
  std::vector<Var> all(std::string_view slot) const;

 private:
  Builder* builder_;
  const Op* op_;
};

// How a parameter or state variable gets its first value: an op (fill, uniform, gaussian, ...) and
// its attributes, put into the startup program.
struct Initializer {
  std::string op = "fill";
  Attrs attrs = {{"value", 0.0}};
};

struct ParameterSpec {
  std::string name;
  Shape shape;
  DType dtype = DType::kF32;
  Initializer init = {};
  Attrs attrs = {};  // lr (factor), l1, l2 (decay), need_clip, ...
  bool trainable = true;
  bool is_distributed = false;  // on the parameter servers, where the job has some
};

class Builder {
 public:
  Builder(Program& main, Program& startup);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Program& main() { return main_; }
  Program& startup() { return startup_; }

  Var data(const std::string& name, DType dtype, Shape shape,
           std::source_location where = std::source_location::current());
  // Asking again for a parameter of the same name and type shares it.
  Var parameter(const ParameterSpec& spec);
  // A persistable variable that is not trained: statistics, accumulators, counters.
  Var state(const std::string& name, DType dtype, Shape shape, double value = 0.0,
            Placement placement = {});
  // The number of steps done, i64[1]: random ops and schedules read it; the optimizer increments
  // it.
  Var step();
  Var var(const std::string& name);  // a handle on an existing variable

  // Appends an op. Outputs not named in `dests` get fresh names; optional ones and lists are made
  // only if named there.
  Results op(std::string_view type, const std::vector<Arg>& args, Attrs attrs = {},
             const std::vector<Dest>& dests = {});

  // fc -> fc_0, fc_1, ... unique in both programs.
  std::string unique_name(const std::string& prefix);

  Role role() const { return role_; }
  const Loc& loc() const { return loc_; }
  const std::string& layer() const { return layer_; }

  // Sets what following ops inherit, as long as it lives. They nest; an outer location wins,
  // because the outermost call is the one that the user wrote.
  class Inherited {
   public:
    Inherited(const Inherited&) = delete;
    Inherited& operator=(const Inherited&) = delete;
    ~Inherited() {
      b_.role_ = role_;
      b_.loc_ = loc_;
      b_.layer_ = layer_;
      b_.guard_ = guard_;
      b_.stage_ = stage_;
    }

   private:
    friend class Builder;
    Inherited(Builder& b, Role role, Loc loc, std::string layer, std::string guard, int stage)
        : b_(b),
          role_(std::exchange(b.role_, role)),
          loc_(std::exchange(b.loc_, std::move(loc))),
          layer_(std::exchange(b.layer_, std::move(layer))),
          guard_(std::exchange(b.guard_, std::move(guard))),
          stage_(std::exchange(b.stage_, stage)) {}
    Builder& b_;
    Role role_;
    Loc loc_;
    std::string layer_, guard_;
    int stage_;
  };
  [[nodiscard]] Inherited at(Loc loc) {
    return {*this, role_, loc_.known() ? loc_ : std::move(loc), layer_, guard_, stage_};
  }
  [[nodiscard]] Inherited in_role(Role role) { return {*this, role, loc_, layer_, guard_, stage_}; }
  [[nodiscard]] Inherited in_layer(std::string layer) {
    return {*this, role_, loc_, std::move(layer), guard_, stage_};
  }
  // The ops run only in steps in which `guard`, bool[1], is true; a Var of nothing: in every step.
  [[nodiscard]] Inherited under(const Var& guard) {
    return {*this, role_, loc_, layer_, guard.defined() ? guard.name() : "", stage_};
  }
  // The ops belong to this stage of a pipeline; -1: to the one that follows from what they read.
  [[nodiscard]] Inherited in_stage(int stage) {
    return {*this, role_, loc_, layer_, guard_, stage};
  }

 private:
  friend class Var;
  void append_startup(const VarInfo& info, const Initializer& init);

  Program& main_;
  Program& startup_;
  Role role_ = Role::kForward;
  Loc loc_;
  std::string layer_, guard_;
  int stage_ = -1;
  std::map<std::string, int> counters_;
};

inline constexpr std::string_view kStepVar = "@step@";
inline std::string grad_name(std::string_view var) { return std::string(var) + "@GRAD"; }

}  // namespace fleetx::ir
