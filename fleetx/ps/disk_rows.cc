#include "fleetx/ps/disk_rows.h"

#include <dlfcn.h>

#include "fleetx/base/error.h"

namespace fleetx::ps {

std::unique_ptr<DiskRows> open_disk_rows(const DiskOptions& options) {
  // Searched beside this library and in the system's paths.
  void* const library = dlopen("libfleetx_disk.so.0", RTLD_NOW);
  if (library == nullptr)
    fail(Error::Kind::kUnsupported,
         str("tables on disk cannot be loaded (", dlerror(), "); give the server more memory"));
  void* const symbol = dlsym(library, "fleetx_open_disk_rows");
  FLEETX_CHECK(symbol != nullptr, "libfleetx_disk has no fleetx_open_disk_rows");
  const auto open = reinterpret_cast<decltype(&fleetx_open_disk_rows)>(symbol);
  return std::unique_ptr<DiskRows>(open(&options));
}

}  // namespace fleetx::ps
