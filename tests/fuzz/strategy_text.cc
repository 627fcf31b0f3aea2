// Fuzz target: a saved DistributedStrategy. What is read must come back the same when it is written
// and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fleetx/base/error.h"
#include "fleetx/fleet/distributed_strategy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fleetx;
  fleet::DistributedStrategy strategy, again;
  try {
    strategy.merge_text({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::kInvalidArgument) __builtin_trap();
    return 0;
  }
  const std::string text = strategy.to_text();
  again.merge_text(text, "again");
  if (again.to_text() != text || strategy.to_table().empty()) __builtin_trap();
  return 0;
}
