#include "fleetx/base/libraries.h"

#include <hwloc.h>

#include "fleetx/base/error.h"

namespace fleetx::launch {
namespace {

std::string hwloc_version() {
  const unsigned version = hwloc_get_api_version();  // 0x00MMmmpp
  return str(version >> 16, ".", version >> 8 & 0xff, ".", version & 0xff);
}

const RegisterLibrary hwloc({"hwloc", hwloc_version(), "cores of a slot"});

}  // namespace
}  // namespace fleetx::launch
