// The stores of comm/ as launch/ wants them.
#pragma once

#include "fleetx/launch/store.h"

namespace fleetx::tools {

launch::Stores stores_of_comm();

}  // namespace fleetx::tools
