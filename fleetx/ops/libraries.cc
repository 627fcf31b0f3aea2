#include "fleetx/base/libraries.h"

#include <dnnl.hpp>

#include "fleetx/base/error.h"

namespace fleetx::ops {
namespace {

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return str(v->major, ".", v->minor, ".", v->patch);
}

const RegisterLibrary onednn({"oneDNN", onednn_version(),
                              "convolution, matmul, pooling, normalization"});

}  // namespace
}  // namespace fleetx::ops
