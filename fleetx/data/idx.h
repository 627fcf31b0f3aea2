// The IDX format of MNIST and its relatives: a tensor of bytes, plain or compressed with gzip.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fleetx/tensor/tensor.h"

namespace fleetx::data {

// u8 elements only (all that these data sets use). Damaged input is kCorrupt; `source` names it.
Tensor parse_idx(std::string_view bytes, std::string_view source);
// A file that is compressed is recognised by its first bytes, not by its name.
Tensor load_idx(const std::string& path);

}  // namespace fleetx::data
