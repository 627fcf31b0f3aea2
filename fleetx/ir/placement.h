// Where the values of a persistable variable live in a job of many ranks. Startup, checkpoints and
// save/load follow it and nothing else: a checkpoint does not depend on the number of ranks.
//
//   state v      : f32[10]                        replicated: the same on all ranks (the default)
//   state error  : f32[10] per_rank(dp, sum)      each rank of an axis has a value of its own
//   param w      : f32[5,8] sharded(mp, 0)        the part of this rank; the whole is f32[10,8]
//   state m      : f32[10] owned(dp, 1)           rank 1 of an axis has it, the others do not
//   state weight : f32[1] transient               made anew by startup, never saved
//
// A variable is replicated along every axis that its placement does not name. Files hold what is
// owned like what is replicated, so that any other division can load it.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "fleetx/base/shape.h"

namespace fleetx::ir {

struct Placement {
  enum class Kind : uint8_t { kReplicated, kPerRank, kSharded, kTransient, kOwned };
  // How a per-rank variable reaches another number of ranks than it was saved with.
  enum class Resize : uint8_t {
    kAverage,  // everybody gets the mean (statistics)
    kSum,      // the sum over all ranks stays the same (residuals, counts)
    kReset,    // as startup makes it
  };

  Kind kind = Kind::kReplicated;
  std::string axis = "";  // kPerRank, kSharded, kOwned
  int dim = 0;            // kSharded: the dimension that is cut
  Resize resize = Resize::kAverage;
  int owner = 0;  // kOwned: the rank that has it

  static Placement replicated() { return {}; }
  static Placement per_rank(std::string axis, Resize resize) {
    return {.kind = Kind::kPerRank, .axis = std::move(axis), .resize = resize};
  }
  static Placement sharded(std::string axis, int dim) {
    return {.kind = Kind::kSharded, .axis = std::move(axis), .dim = dim};
  }
  static Placement transient() { return {.kind = Kind::kTransient}; }
  static Placement owned(std::string axis, int owner) {
    return {.kind = Kind::kOwned, .axis = std::move(axis), .owner = owner};
  }

  bool is_replicated() const { return kind == Kind::kReplicated; }
  bool is_per_rank() const { return kind == Kind::kPerRank; }
  bool is_sharded() const { return kind == Kind::kSharded; }
  bool is_transient() const { return kind == Kind::kTransient; }
  bool is_owned() const { return kind == Kind::kOwned; }
  bool operator==(const Placement&) const = default;
};

std::string_view name_of(Placement::Kind kind);
std::string_view name_of(Placement::Resize resize);
std::optional<Placement::Kind> placement_kind_from_name(std::string_view name);
std::optional<Placement::Resize> resize_from_name(std::string_view name);
std::ostream& operator<<(std::ostream& out, const Placement& placement);  // per_rank(dp, sum)

// The shape of one rank's part of a sharded variable. A dimension that the ranks of the axis do not
// divide is kInvalidArgument that names the variable.
Shape shard_of(const Shape& whole, const Placement& placement, int ranks, std::string_view var);
Shape whole_of(const Shape& shard, const Placement& placement, int ranks);

}  // namespace fleetx::ir
