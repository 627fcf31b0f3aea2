#include "fleetx/base/libraries.h"

#include <nlohmann/json.hpp>

#include "fleetx/base/error.h"

namespace fleetx {
namespace {

const RegisterLibrary json({"nlohmann-json",
                            str(NLOHMANN_JSON_VERSION_MAJOR, ".", NLOHMANN_JSON_VERSION_MINOR, ".",
                                NLOHMANN_JSON_VERSION_PATCH),
                            "headers of tensor files, manifests"});

}  // namespace
}  // namespace fleetx
