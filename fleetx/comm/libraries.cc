#include "fleetx/base/libraries.h"

#include <gloo/config.h>

#include "fleetx/base/error.h"

namespace fleetx {
namespace {

const RegisterLibrary gloo(
    {"Gloo", str(GLOO_VERSION_MAJOR, ".", GLOO_VERSION_MINOR, ".", GLOO_VERSION_PATCH),
     "bytes between hosts"});

}  // namespace
}  // namespace fleetx
