// Lines of libsvm's format: a label, then features as index:value.
//
//   1 3:0.5 17:1 200:2        # what follows is a comment
//
// The slots: the label (i64 or f32, 1 value), the indices (i64, any number), the values (f32, any
// number). A line has at least one feature. Indices stay as they are.
#pragma once

#include "fleetx/data/line_format.h"

namespace fleetx::data {

std::unique_ptr<const LineFormat> libsvm_format(std::vector<Slot> slots);

}  // namespace fleetx::data
