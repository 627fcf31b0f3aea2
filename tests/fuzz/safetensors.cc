// Input is either refused as damaged, or gives tensors that a round trip keeps as they are.
#include "fleetx/tensor/safetensors.h"

#include <cstdlib>
#include <cstring>
#include <iostream>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fleetx;
  Safetensors first;
  try {
    first = parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  } catch (const Error& e) {
    if (e.kind() == Error::Kind::kCorrupt) return 0;
    std::cerr << "refused, but not as damaged: " << e.what() << '\n';
    std::abort();
  }
  const std::string bytes = to_safetensors(first);
  const Safetensors second = parse_safetensors(std::as_bytes(std::span(bytes)), "again");
  bool same = first.metadata == second.metadata && first.tensors.size() == second.tensors.size();
  for (const auto& [name, t] : first.tensors) {
    const auto it = second.tensors.find(name);
    same = same && it != second.tensors.end() && it->second.dtype() == t.dtype() &&
           it->second.shape() == t.shape() &&
           std::memcmp(it->second.raw(), t.raw(), t.bytes()) == 0;
  }
  if (same) return 0;
  std::cerr << "a round trip changes the tensors\n";
  std::abort();
}
