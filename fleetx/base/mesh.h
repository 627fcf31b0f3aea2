// The ranks of a job as a grid with named axes, seen from one of them. The last axis varies
// fastest:
//
//   Mesh mesh({{"pp", 2}, {"dp", 4}}, 5);      // 8 ranks; rank 5 is pp=1, dp=1
//   mesh.coordinate("dp") == 1; mesh.group("dp") == {4, 5, 6, 7}; mesh.group("pp") == {1, 5}
//
// Several axes together are named with '+': mesh.group("pp+dp") are all eight. Parts: mesh_part.h.
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
    bool operator==(const Axis&) const = default;
  };

  Mesh() = default;  // one rank, no axes
  Mesh(std::vector<Axis> axes, int rank);

  int rank() const { return rank_; }
  int world() const;  // product of all sizes
  const std::vector<Axis>& axes() const { return axes_; }
  bool has(std::string_view axis) const;

  // "dp+mp" -> {"dp", "mp"}
  static std::vector<std::string> axes_of(std::string_view group);
  // Of an axis or of axes joined by '+', the last of which varies fastest. An axis that is not
  // there is an error that names the known ones.
  int size(std::string_view group) const;
  int coordinate(std::string_view group) const;
  // The ranks that differ from this one at most in these axes, by coordinate.
  std::vector<int> group(std::string_view group) const;

 private:
  struct Place {
    int size, stride;
  };
  Place place(std::string_view axis) const;

  std::vector<Axis> axes_;
  int rank_ = 0;
};

// How many ranks share each kind of work; -1: as many as are left.
struct Degrees {
  int dp = -1;       // copies of the model, each with its part of the batch
  int sharding = 1;  // parts of the optimizer's state, with a part of the batch each
  int pp = 1;        // stages of a pipeline
  int mp = 1;        // parts of one layer (tensor parallel)
};

// The mesh of a job: axes pp, dp, mp. Ranks of one mp group are neighbours, as they talk most. All
// who have a part of the batch are along dp, sharding x dp of them; neighbours divide the state.
// Degrees that do not multiply to the number of workers are kInvalidArgument.
Mesh mesh_of(const Degrees& degrees, int workers, int rank);

}  // namespace fleetx
