#include "fleetx/base/libraries.h"

#include <omp.h>
#include <spdlog/version.h>

#include <algorithm>

#include "fleetx/base/error.h"

namespace fleetx {
namespace {

std::vector<Library>& registered() {
  static std::vector<Library> list;
  return list;
}

const RegisterLibrary openmp({"OpenMP", std::to_string(_OPENMP), "oneDNN's threads"});
const RegisterLibrary spdlog({"spdlog",
                              str(SPDLOG_VER_MAJOR, ".", SPDLOG_VER_MINOR, ".", SPDLOG_VER_PATCH),
                              "log lines"});

}  // namespace

RegisterLibrary::RegisterLibrary(Library library) { registered().push_back(std::move(library)); }

std::vector<Library> libraries() {
  std::vector<Library> list = registered();
  std::ranges::sort(list, {}, &Library::name);
  return list;
}

}  // namespace fleetx
