// Any bytes on a connection of the store are either refused as damaged or give messages that are
// the same after a round trip.
#include "fleetx/comm/store_wire.h"

#include <iostream>

#include "fleetx/base/error.h"
#include "tests/fuzz/refusal.h"

namespace fleetx::comm::wire {
namespace {

void check(std::string_view bytes) {
  Reader reader(1 << 16);
  try {
    reader.feed(bytes);
    while (const auto message = reader.next()) {
      Reader again(kMaxBytes);
      again.feed(encode(*message));
      if (again.next() != message) {
        std::cerr << "a round trip changes a message\n";
        std::abort();
      }
      for (const std::string& part : unpack(message->value)) (void)part;
    }
  } catch (const Error& e) {
    testing::expect_refusal(e);
  }
}

}  // namespace
}  // namespace fleetx::comm::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fleetx::comm::wire::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
