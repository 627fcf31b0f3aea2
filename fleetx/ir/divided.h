// Names of layers that the ranks of an axis divide (see nn/parallel.h).
#pragma once

#include <string_view>

namespace fleetx::ir {

// The axis of the mesh along which ranks divide layers, and the name of their group.
inline constexpr const char* kModelAxis = "mp";
// Of the whole first value of a parameter, of which startup keeps a part, or fewer digits.
inline constexpr std::string_view kWholeSuffix = "@WHOLE";
// Of the weight of a whole layer: the axis along which ranks may divide it, 1 (columns) or 0
// (rows); see strategies/divide_layers.h.
inline constexpr const char* kDivideAttr = "divide";

}  // namespace fleetx::ir
