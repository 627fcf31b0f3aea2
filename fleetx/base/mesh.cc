#include "fleetx/base/mesh.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "fleetx/base/error.h"
#include "fleetx/base/mesh_part.h"
#include "fleetx/base/names.h"

namespace fleetx {
namespace {

// The number of a part, which must divide the size of its axis.
int neighbours_of(std::string_view part, int size) {
  const std::string_view digits = part.substr(whole_axis(part).size() + 1);
  const char* const end = digits.data() + digits.size();
  int neighbours = 0;
  const auto [next, error] = std::from_chars(digits.data(), end, neighbours);
  check_arg(error == std::errc{} && next == end && neighbours >= 1 && size % neighbours == 0,
            "mesh: '", part, "' is no part of its axis, which has ", size,
            " ranks; the number must divide that");
  return neighbours;
}

}  // namespace

Mesh::Mesh(std::vector<Axis> axes, int rank) : axes_(std::move(axes)), rank_(rank) {
  for (size_t i = 0; i < axes_.size(); ++i) {
    check_arg(axes_[i].size >= 1, "mesh: axis '", axes_[i].name, "' has the size ", axes_[i].size);
    for (size_t j = 0; j < i; ++j)
      check_arg(axes_[i].name != axes_[j].name, "mesh: the axis '", axes_[i].name,
                "' is given twice");
  }
  check_arg(rank >= 0 && rank < world(), "mesh: rank ", rank, " of ", world());
}

int Mesh::world() const {
  int n = 1;
  for (const Axis& axis : axes_) n *= axis.size;
  return n;
}

bool Mesh::has(std::string_view axis) const {
  return std::any_of(axes_.begin(), axes_.end(),
                     [&](const Axis& a) { return a.name == whole_axis(axis); });
}

Mesh::Place Mesh::place(std::string_view axis) const {
  const std::string_view whole = whole_axis(axis);
  int stride = 1;
  std::vector<std::string> known;
  for (size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i].name == whole)
      return axis == whole               ? Place{axes_[i].size, stride}
             : axis[whole.size()] == '/' ? Place{neighbours_of(axis, axes_[i].size), stride}
                                         : Place{axes_[i].size / neighbours_of(axis, axes_[i].size),
                                                 stride * neighbours_of(axis, axes_[i].size)};
    stride *= axes_[i].size;
    known.push_back(axes_[i].name);
  }
  fail(Error::Kind::kInvalidArgument,
       str("the mesh has no axis '", axis, "'; its axes are: ", join(known, ", ")));
}

std::vector<std::string> Mesh::axes_of(std::string_view group) {
  std::vector<std::string> axes;
  for (;;) {
    const size_t plus = group.find('+');
    axes.emplace_back(group.substr(0, plus));
    if (plus == std::string_view::npos) return axes;
    group.remove_prefix(plus + 1);
  }
}

int Mesh::size(std::string_view group) const {
  int n = 1;
  for (const std::string& axis : axes_of(group)) n *= place(axis).size;
  return n;
}

int Mesh::coordinate(std::string_view group) const {
  int at = 0;
  for (const std::string& axis : axes_of(group)) {
    const Place p = place(axis);
    at = at * p.size + rank_ / p.stride % p.size;
  }
  return at;
}

std::vector<int> Mesh::group(std::string_view group) const {
  std::vector<int> ranks{rank_};
  for (const std::string& axis : axes_of(group)) {
    const Place p = place(axis);
    std::vector<int> more;
    for (const int rank : ranks) {
      const int first = rank - rank / p.stride % p.size * p.stride;
      for (int i = 0; i < p.size; ++i) more.push_back(first + i * p.stride);
    }
    ranks = std::move(more);
  }
  return ranks;
}

namespace {

// Of degrees that do not make `workers`, of which all but dp make `others`.
std::string what_would_help(const Degrees& degrees, int workers, int64_t others) {
  if (degrees.dp == -1) {
    const int64_t next = (workers / others + 1) * others;
    return str(" (dp -1: as many as are left): pp x sharding x mp is ", others, ", so start ",
               workers > others ? str(next - others, " or ") : "", next, " workers");
  }
  const int64_t made = others * degrees.dp;
  const int64_t off = std::abs(made - workers);
  return str(", but to ", made, ", ", off, made > workers ? " more" : " fewer", ": start ", made,
             " workers",
             workers % others == 0 ? str(", or set dp to ", workers / others, " or to -1") : "");
}

}  // namespace

Mesh mesh_of(const Degrees& degrees, int workers, int rank) {
  Degrees d = degrees;
  for (const auto& [name, degree] : {std::pair{"sharding", d.sharding}, {"pp", d.pp}, {"mp", d.mp}})
    check_arg(degree >= 1, "mesh: the degree of '", name, "' is ", degree, "; must be at least 1");
  check_arg(d.dp == -1 || d.dp >= 1, "mesh: the degree of 'dp' is ", d.dp,
            "; must be at least 1, or -1: as many as the others leave");
  const int64_t others = int64_t{1} * d.sharding * d.pp * d.mp;
  if (d.dp == -1) d.dp = static_cast<int>(workers / others);
  check_arg(d.dp >= 1 && others * d.dp == workers, "mesh: the degrees pp ", d.pp, " x sharding ",
            d.sharding, " x dp ", degrees.dp, " x mp ", d.mp, " do not multiply to the ", workers,
            " workers of the job", what_would_help(degrees, workers, others));
  return Mesh({{"pp", d.pp}, {"dp", d.sharding * d.dp}, {"mp", d.mp}}, rank);
}

}  // namespace fleetx
