#include "fleetx/base/libraries.h"

#include <archive.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <turbojpeg.h>
#include <unicode/uvernum.h>
#include <zlib.h>

#include <filesystem>

namespace fleetx {
namespace {

// turbojpeg has no version function; the file name of the loaded library has it.
std::string turbojpeg_file() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&tjGetErrorStr2), &info) == 0) return "unknown";
  std::error_code error;
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? "unknown" : path.filename().string();
}

const RegisterLibrary turbojpeg({"libjpeg-turbo", turbojpeg_file(), "photos"});
const RegisterLibrary libcurl({"libcurl", curl_version_info(CURLVERSION_NOW)->version,
                               "downloads"});
const RegisterLibrary libarchive({"libarchive", archive_version_string(), "archives"});
const RegisterLibrary icu({"ICU", U_ICU_VERSION, "tokenizers"});
const RegisterLibrary zlib({"zlib", zlibVersion(), "compressed data sets"});

}  // namespace
}  // namespace fleetx
