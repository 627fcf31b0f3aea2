#include "tests/fuzz/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fleetx::check_program_parser(fleetx::ir::parse_text, {reinterpret_cast<const char*>(data), size});
  return 0;
}
