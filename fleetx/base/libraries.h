// The third-party libraries, for `fleetx doctor`. Each folder registers those it uses in its own
// libraries.cc, so that no other folder includes their headers.
#pragma once

#include <string>
#include <vector>

namespace fleetx {

struct Library {
  std::string name;
  std::string version;  // of the loaded library, if it has a version function
  std::string purpose;
};

std::vector<Library> libraries();  // by name

// static const RegisterLibrary zlib({"zlib", zlibVersion(), "compressed data sets"});
struct RegisterLibrary {
  explicit RegisterLibrary(Library library);
};

}  // namespace fleetx
