#include "fleetx/base/libraries.h"

#include <google/protobuf/stubs/common.h>

namespace fleetx {
namespace {

const RegisterLibrary protobuf({"protobuf",
                                google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION),
                                "program files"});

}  // namespace
}  // namespace fleetx
