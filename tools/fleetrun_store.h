// Implements launch/store.h with the store of comm/.
#pragma once

#include "fleetx/launch/store.h"

namespace fleetx::tools {

launch::Stores stores_of_comm();

}  // namespace fleetx::tools
