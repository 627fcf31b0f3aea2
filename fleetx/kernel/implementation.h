// Names of implementations, as kernels report them: "jit:avx2", "x64:gemm:jit", "ref:any". A kernel
// that runs several names them all: "jit:avx2, dx x64:gemm:jit".
#pragma once

#include <string_view>

namespace fleetx::kernel {

// oneDNN's loops by the definition, a hundred times slower than its generated code. What it calls
// "ref" begins a name or follows a colon.
inline bool is_reference(std::string_view implementation) {
  for (size_t at = implementation.find("ref"); at != std::string_view::npos;
       at = implementation.find("ref", at + 1))
    if (at == 0 || implementation[at - 1] == ':' || implementation[at - 1] == ' ') return true;
  return false;
}

}  // namespace fleetx::kernel
