#include "fleetx/ir/placement.h"

#include <array>
#include <ostream>

#include "fleetx/base/error.h"

namespace fleetx::ir {
namespace {

constexpr std::array<std::string_view, 5> kKinds{"replicated", "per_rank", "sharded", "transient",
                                                 "owned"};
constexpr std::array<std::string_view, 3> kResizes{"average", "sum", "reset"};

template <class Enum, size_t n>
std::optional<Enum> from_name(const std::array<std::string_view, n>& names, std::string_view name) {
  for (size_t i = 0; i < n; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Placement::Kind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::string_view name_of(Placement::Resize resize) { return kResizes[static_cast<size_t>(resize)]; }

std::optional<Placement::Kind> placement_kind_from_name(std::string_view name) {
  return from_name<Placement::Kind>(kKinds, name);
}

std::optional<Placement::Resize> resize_from_name(std::string_view name) {
  return from_name<Placement::Resize>(kResizes, name);
}

std::ostream& operator<<(std::ostream& out, const Placement& p) {
  out << name_of(p.kind);
  if (p.is_per_rank()) out << '(' << p.axis << ", " << name_of(p.resize) << ')';
  if (p.is_sharded()) out << '(' << p.axis << ", " << p.dim << ')';
  if (p.is_owned()) out << '(' << p.axis << ", " << p.owner << ')';
  return out;
}

Shape shard_of(const Shape& whole, const Placement& placement, int ranks, std::string_view var) {
  if (!placement.is_sharded()) return whole;
  check_arg(placement.dim >= 0 && placement.dim < whole.rank(), "variable '", var, "' is ",
            placement, ", but its shape ", whole, " has no dimension ", placement.dim);
  const int64_t size = whole[placement.dim];
  check_arg(size % ranks == 0, "variable '", var, "' is ", placement, ": dimension ", placement.dim,
            " of ", whole, " cannot be cut into ", ranks, " equal parts for the ", ranks,
            " ranks of '", placement.axis, "'; choose a size that ", ranks, " divides");
  Shape shard = whole;
  shard[placement.dim] = size / ranks;
  return shard;
}

Shape whole_of(const Shape& shard, const Placement& placement, int ranks) {
  Shape whole = shard;
  if (placement.is_sharded()) whole[placement.dim] *= ranks;
  return whole;
}

}  // namespace fleetx::ir
