// Any bytes on a connection between worker and server are either refused as damaged or give the
// same bytes after a round trip.
#include "fleetx/ps/wire.h"

#include <iostream>

#include "fleetx/ps/stats.h"

namespace fleetx::ps {
namespace {

template <class Decode>
void check(std::string_view bytes, const Decode& decode_and_encode) {
  try {
    const std::string again = decode_and_encode(bytes);
    if (again == bytes) return;
    std::cerr << "a round trip changes a message\n";
  } catch (const Error& e) {
    if (e.kind() == Error::Kind::kCorrupt) return;
    std::cerr << "refused, but not as damaged: " << e.what() << '\n';
  }
  std::abort();
}

void check_all(std::string_view bytes) {
  if (bytes.size() >= wire::kHeaderBytes)
    check(bytes.substr(0, wire::kHeaderBytes), [](std::string_view b) {
      const auto out =
          encode(wire::decode(std::span<const char, wire::kHeaderBytes>(b.data(), b.size())));
      return std::string(out.data(), out.size());
    });
  check(bytes, [](std::string_view b) { return encode(wire::decode_hello(b)); });
  check(bytes, [](std::string_view b) { return encode(wire::decode_welcome(b)); });
  check(bytes, [](std::string_view b) { return encode(decode_stats(b)); });
}

}  // namespace
}  // namespace fleetx::ps

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fleetx::ps::check_all({reinterpret_cast<const char*>(data), size});
  return 0;
}
