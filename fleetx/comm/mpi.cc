#include "fleetx/comm/mpi.h"

#include <dlfcn.h>

#include "fleetx/base/error.h"

namespace fleetx::comm {

std::unique_ptr<Communicator> make_mpi(const CommOptions& options) {
  // Searched beside this library and in the system's paths. Never closed: MPI cannot be initialized
  // twice in a process.
  void* const library = dlopen("libfleetx_mpi.so.0", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    fail(Error::Kind::kUnsupported,
         str("backend mpi cannot be loaded (", dlerror(), "); use backend hierarchical"));
  void* const symbol = dlsym(library, "fleetx_make_mpi");
  FLEETX_CHECK(symbol != nullptr, "libfleetx_mpi has no fleetx_make_mpi");
  const auto make = reinterpret_cast<decltype(&fleetx_make_mpi)>(symbol);
  return std::unique_ptr<Communicator>(make(&options));
}

}  // namespace fleetx::comm
