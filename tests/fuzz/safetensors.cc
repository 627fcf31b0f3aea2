// Any bytes are either refused as damaged or give tensors that are the same after a round trip.
#include "fleetx/tensor/safetensors.h"
#include "tests/fuzz/refusal.h"

#include <cstring>
#include <iostream>

namespace fleetx {
namespace {

bool same(const Safetensors& a, const Safetensors& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, x] : a.tensors) {
    const auto it = b.tensors.find(name);
    if (it == b.tensors.end()) return false;
    const Tensor& y = it->second;
    if (x.dtype() != y.dtype() || x.shape() != y.shape()) return false;
    if (x.bytes() > 0 && std::memcmp(x.raw(), y.raw(), x.bytes()) != 0) return false;
  }
  return true;
}

void check(std::span<const std::byte> bytes) {
  Safetensors content;
  try {
    content = parse_safetensors(bytes, "fuzz");
  } catch (const Error& e) {
    testing::expect_refusal(e);
    return;
  }
  const std::string again = to_safetensors(content);
  if (same(content, parse_safetensors(std::as_bytes(std::span(again)), "again"))) return;
  std::cerr << "a round trip changes the tensors\n";
  std::abort();
}

}  // namespace
}  // namespace fleetx

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fleetx::check(std::as_bytes(std::span(data, size)));
  return 0;
}
