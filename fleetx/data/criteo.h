// Lines of the Criteo display advertising data: a label, 13 numbers and 26 words, separated by
// tabs; numbers and words may be missing.
//
// The slots: the numbers (f32, 13 values), one of ids for every word (i64, 1), the label (i64, 1).
// Numbers are scaled by their range in the data set, missing ones are 0 before that. An id is the
// CRC-32 of the word's place (1 to 26) and the word, modulo `ids`: equal words of two places are
// two ids.
#pragma once

#include "fleetx/data/line_format.h"

namespace fleetx::data {

std::unique_ptr<const LineFormat> criteo_format(std::vector<Slot> slots, int64_t ids);

}  // namespace fleetx::data
