#include "fleetx/base/mesh.h"

#include <algorithm>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"

namespace fleetx {

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
  return std::any_of(axes_.begin(), axes_.end(), [&](const Axis& a) { return a.name == axis; });
}

Mesh::Place Mesh::place(std::string_view axis) const {
  int stride = 1;
  std::vector<std::string> known;
  for (size_t i = axes_.size(); i-- > 0;) {
    if (axes_[i].name == axis) return {axes_[i].size, stride};
    stride *= axes_[i].size;
    known.push_back(axes_[i].name);
  }
  fail(Error::Kind::kInvalidArgument,
       str("the mesh has no axis '", axis, "'; its axes are: ", join(known, ", ")));
}

int Mesh::size(std::string_view axis) const { return place(axis).size; }

int Mesh::coordinate(std::string_view axis) const {
  const Place p = place(axis);
  return rank_ / p.stride % p.size;
}

std::vector<int> Mesh::group(std::string_view axis) const {
  const Place p = place(axis);
  const int first = rank_ - rank_ / p.stride % p.size * p.stride;
  std::vector<int> ranks;
  for (int i = 0; i < p.size; ++i) ranks.push_back(first + i * p.stride);
  return ranks;
}

}  // namespace fleetx
