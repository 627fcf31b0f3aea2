// The ranks of a job as a grid with named axes, seen from one of them. The last axis varies
// fastest:
//
//   Mesh mesh({{"pp", 2}, {"dp", 4}}, 5);      // 8 ranks; rank 5 is pp=1, dp=1
//   mesh.coordinate("dp") == 1; mesh.group("dp") == {4, 5, 6, 7}; mesh.group("pp") == {1, 5}
//
// A value; safe to share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetx {

class Mesh {
 public:
  struct Axis {
    std::string name;
    int size = 1;
  };

  Mesh() = default;  // one rank, no axes
  Mesh(std::vector<Axis> axes, int rank);

  int rank() const { return rank_; }
  int world() const;  // product of all sizes
  const std::vector<Axis>& axes() const { return axes_; }
  bool has(std::string_view axis) const;

  // An axis that is not there is an error that names the known ones.
  int size(std::string_view axis) const;
  int coordinate(std::string_view axis) const;
  // The ranks that differ from this one at most in this axis, by coordinate.
  std::vector<int> group(std::string_view axis) const;

 private:
  struct Place {
    int size, stride;
  };
  Place place(std::string_view axis) const;

  std::vector<Axis> axes_;
  int rank_ = 0;
};

}  // namespace fleetx
