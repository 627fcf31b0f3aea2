// Parts of an axis of a mesh, as groups of ranks name them:
//
//   "dp/2"   neighbours, two by two; "dp%2": those at the same place in their "dp/2"
//
// Of the ranks 0 to 7 of an axis, 5 is in the group {4, 5} of "dp/2" and {1, 3, 5, 7} of "dp%2".
// Mesh takes such a name wherever it takes that of an axis.
#pragma once

#include <string_view>

namespace fleetx {

// The axis that a part belongs to: "dp/2" -> "dp"; an axis belongs to itself.
inline std::string_view whole_axis(std::string_view part) {
  return part.substr(0, part.find_first_of("/%"));
}

}  // namespace fleetx
