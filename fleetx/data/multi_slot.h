// Samples as lines of text, as data generators print them: for every slot, how many values it has
// and the values.
//
//   2 17 4 1 0.5 1 1        two ids, a number, a label
#pragma once

#include "fleetx/data/line_format.h"

namespace fleetx::data {

std::unique_ptr<const LineFormat> multi_slot_format(std::vector<Slot> slots);

}  // namespace fleetx::data
