#include "fleetx/base/libraries.h"

#include <openssl/crypto.h>
#include <png.h>

namespace fleetx {
namespace {

const RegisterLibrary openssl({"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING),
                               "checksums of checkpoints"});
const RegisterLibrary png({"libpng", png_get_libpng_ver(nullptr), "pictures of curves"});

}  // namespace
}  // namespace fleetx
