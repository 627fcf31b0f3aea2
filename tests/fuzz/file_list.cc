// What a server says about a data set: the yaml and the lists.
#include "fleetx/base/error.h"
#include "fleetx/data/archive.h"
#include "fleetx/data/download.h"
#include "fleetx/data/hadoop.h"

using namespace fleetx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    for (const data::Listed& file : data::parse_file_list(text, "list"))
      FLEETX_CHECK(data::is_inside(file.name), file.name);
  } catch (const Error& e) {
    FLEETX_CHECK(e.kind() == Error::Kind::kCorrupt, e.what());
  }
  try {
    data::parse_location(text, "yaml");
  } catch (const Error& e) {
    FLEETX_CHECK(e.kind() != Error::Kind::kInternal, e.what());
  }
  try {
    data::parse_hadoop(text, "yaml");
  } catch (const Error& e) {
    FLEETX_CHECK(e.kind() != Error::Kind::kInternal, e.what());
  }
  return 0;
}
