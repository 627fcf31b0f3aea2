// Samples as lines of text, as data generators print them: for every slot, how many values it has
// and the values.
//
//   2 17 4 1 0.5 1 1        two ids, a number, a label
//
// Damaged lines are kCorrupt errors that show the line and name the slot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleetx/tensor/tensor.h"

namespace fleetx::data {

struct Slot {
  std::string name;
  DType dtype = DType::kI64;  // or kF32
  int64_t width = -1;         // values of every sample; -1: any number
};

// The values of one slot in all samples, one after the other, and how many each sample has.
struct SlotValues {
  Tensor values;   // [all values]
  Tensor lengths;  // i64 [samples]
};

// `lines` are whole lines. One result per slot.
std::vector<SlotValues> parse_multi_slot(std::string_view lines, const std::vector<Slot>& slots);

}  // namespace fleetx::data
