// The formats of sample files by name.
#pragma once

#include "fleetx/data/line_format.h"

namespace fleetx::data {

// multi_slot, criteo or libsvm. `ids`: of criteo, whose words become numbers below it.
std::shared_ptr<const LineFormat> make_format(const std::string& name, std::vector<Slot> slots,
                                              int64_t ids);

}  // namespace fleetx::data
