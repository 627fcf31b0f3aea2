// A Program is a list of ops over named variables: a value that can be printed, saved, compared and
// copied. Everyone may read it; only Builder appends and only Rewriter changes (see builder.h,
// rewriter.h). Not thread-safe while changing.
#pragma once

#include <list>
#include <map>
#include <source_location>
#include <string>
#include <vector>

#include "fleetx/ir/op_def.h"
#include "fleetx/ir/placement.h"
#include "fleetx/ir/training.h"

namespace fleetx::ir {

// Where the user wrote the call, for error messages.
struct Loc {
  std::string file;
  int line = 0;

  static Loc of(const std::source_location& where) {
    return {where.file_name(), static_cast<int>(where.line())};
  }
  bool known() const { return line > 0; }
  bool operator==(const Loc&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Loc& loc);  // train.cc:41

enum class VarKind : uint8_t {
  kDense,
  kSparseRows,  // some rows of a table: ids and values, see kernel/kernel.h; shape is that of the
                // whole table
};

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  VarKind kind = VarKind::kDense;
  int64_t rows = -1;  // kSparseRows: most rows it can hold; -1 where unknown

  bool operator==(const TensorType&) const = default;
};
std::ostream& operator<<(std::ostream& out,
                         const TensorType& type);  // f32[-1,784], sparse f32[1000,8]

// The record of a variable. (`Var` in builder.h is the handle that users hold.)
struct VarInfo {
  std::string name;
  TensorType type;
  bool is_data = false;       // fed by the user
  bool persistable = false;   // lives in the scope from step to step
  bool is_parameter = false;  // persistable and trained
  bool stop_gradient = false;
  // A table that the user wants on the parameter servers, if the job has some. Workers that keep
  // it themselves average its gradient like any other.
  bool is_distributed = false;
  Placement placement;  // persistable variables only
  Attrs attrs;          // what the user says of a parameter: lr, l1, l2, need_clip

  bool operator==(const VarInfo&) const = default;
};

enum class Role : uint8_t { kForward, kBackward, kUpdate };
std::string_view name_of(Role role);

using Names = std::vector<std::string>;

// Copies of forward variables that backward computes again carry this in their names.
inline constexpr std::string_view kRecomputeSuffix = "@RECOMPUTE";

struct Op {
  const OpDef* def = nullptr;
  std::string name;           // layer it belongs to: fc_0
  std::vector<Names> inputs;  // by slot, in the order of def->inputs
  std::vector<Names> outputs;
  Attrs attrs;  // complete: defaults are filled in
  Role role = Role::kForward;
  // A bool[1] variable; in a step in which it is false the op does not run. "": it always runs.
  std::string guard;
  int stage = -1;  // of a pipeline, that computes it; -1: nobody has said
  Loc loc;

  const std::string& type() const { return def->type; }
  const Names& in(std::string_view slot) const {
    return inputs[static_cast<size_t>(def->input_index(slot))];
  }
  const Names& out(std::string_view slot) const {
    return outputs[static_cast<size_t>(def->output_index(slot))];
  }
  bool has_in(std::string_view slot) const { return !in(slot).empty(); }
  bool has_out(std::string_view slot) const { return !out(slot).empty(); }
  template <class T>
  T attr(std::string_view key) const {
    const auto it = attrs.find(key);
    FLEETX_CHECK(it != attrs.end(), "op ", type(), " has no attribute '", key, "'");
    return it->second.template as<T>();
  }
  bool reads(std::string_view var) const;  // as an input or as its guard
  bool writes(std::string_view var) const;
};

// Whether all ranks of a group run it together: ops of its type do, and it names a group. Such an
// op stays even where nobody reads its results, because the other ranks wait for this one.
bool is_collective(const Op& op);

// "train.cc:41: conv2d 'conv_0': ": how every message about an op begins.
std::string describe(const Op& op);

class Program {
 public:
  using Ops = std::list<Op>;

  Program();
  Program(const Program& other);
  Program& operator=(const Program& other);
  Program(Program&&) = default;
  Program& operator=(Program&&) = default;

  const Ops& ops() const { return ops_; }
  const VarInfo* find(std::string_view name) const;
  const VarInfo& var(std::string_view name) const;  // unknown: kInvalidArgument with near names
  std::vector<const VarInfo*> vars() const;         // in order of creation
  std::vector<const VarInfo*> parameters() const;
  const Training& training() const { return training_; }

  // Seed of all random ops that have none of their own.
  uint64_t seed() const { return seed_; }
  void set_seed(uint64_t seed);

  // Changes with every change; (id, version) names one state of one program, for plan caches.
  uint64_t id() const { return id_; }
  uint64_t version() const { return version_; }

  bool operator==(const Program& other) const;  // same text

 private:
  friend class Builder;
  friend class Var;
  friend class Rewriter;

  struct Entry {
    uint64_t order;
    VarInfo info;
  };

  VarInfo& add_var(VarInfo info);  // name must be new
  Op make_op(std::string_view type, std::vector<Names> inputs, std::vector<Names> outputs,
             Attrs attrs) const;

  uint64_t id_;
  uint64_t version_ = 0;
  uint64_t seed_ = 0;
  uint64_t next_order_ = 0;
  Ops ops_;
  std::map<std::string, Entry, std::less<>> vars_;
  Training training_;
};

}  // namespace fleetx::ir
