// The libraries FleetX stands on, for `fleetx doctor`. Each folder that uses one registers it in
// its own libraries.cc, so that nobody else has to see its headers.
#pragma once

#include <string>
#include <vector>

namespace fleetx {

struct Library {
  std::string name;
  std::string version;  // of the one that is loaded, where the library can tell
  std::string purpose;
};

std::vector<Library> libraries();  // by name

// static const RegisterLibrary zlib({"zlib", zlibVersion(), "compressed data sets"});
struct RegisterLibrary {
  explicit RegisterLibrary(Library library);
};

}  // namespace fleetx
