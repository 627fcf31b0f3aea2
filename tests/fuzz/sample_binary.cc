// Any content of a block of packed samples, and any binary file, is read within its bounds or
// refused as damaged. The first byte says which of the two it is. Sums are put right in a file, so
// that what they protect is tried, too.
#include <algorithm>

#include "fleetx/base/checksum.h"
#include "fleetx/data/binary_samples.h"
#include "tests/fuzz/refusal.h"
#include "tests/support/memory_source.h"

namespace fleetx::data {
namespace {

const std::vector<Slot> kSlots{
    {"ids", DType::kI64, -1}, {"dense", DType::kF32, 3}, {"label", DType::kI64, 1}};

void check_block(std::string_view bytes) {
  if (bytes.empty()) return;
  const PackedSamples packed(bytes.substr(1), static_cast<uint8_t>(bytes[0]), kSlots, "fuzz");
  Samples samples(kSlots);
  const size_t which[] = {0, 1, 2};
  for (int64_t at = 0; at < packed.count(); at += 7)
    packed.read(at, std::min<int64_t>(7, packed.count() - at), which, samples);
  for (const Column& c : samples.columns)
    FLEETX_CHECK(c.values.size() == c.begin(static_cast<size_t>(samples.count)));
}

// Slots as a writer makes them, then the fuzzer's blocks with right sums.
std::string file_of(std::string_view bytes) {
  std::string slots;
  const auto put = [](std::string& to, const auto& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(slots, uint32_t{3});
  for (const Slot& slot : kSlots) {
    put(slots, static_cast<uint32_t>(slot.name.size()));
    slots += slot.name;
    put(slots, static_cast<uint8_t>(slot.dtype == DType::kF32));
    put(slots, slot.width);
  }
  std::string out(kBinaryMagic);
  put(out, uint64_t{slots.size()});
  out += slots;
  put(out, word_checksum(slots));
  while (bytes.size() >= 2) {
    const uint64_t samples = static_cast<uint8_t>(bytes[0]);
    uint64_t size = static_cast<uint8_t>(bytes[1]);
    bytes.remove_prefix(2);
    const std::string_view block = bytes.substr(0, samples == 0 ? 0 : size);
    if (samples > 0) size = block.size();
    put(out, samples);
    put(out, size);
    put(out, mix(word_checksum(block), mix(samples, size)));
    out += block;
    bytes.remove_prefix(block.size());
  }
  return out;
}

void check_file_bytes(std::string_view bytes) {
  BinaryReader reader(std::make_unique<testing::MemorySource>(bytes), "", "fuzz", kSlots);
  Samples samples(kSlots);
  while (reader.read(5, samples) > 0) {
  }
}

void check(std::string_view bytes) {
  if (bytes.empty()) return;
  const int kind = bytes[0] % 3;
  bytes.remove_prefix(1);
  try {
    if (kind == 0) check_block(bytes);
    if (kind == 1) check_file_bytes(file_of(bytes));
    if (kind == 2) check_file_bytes(bytes);
  } catch (const Error& e) {
    testing::expect_refusal(e, {Error::Kind::kCorrupt, Error::Kind::kInvalidArgument});
  }
}

}  // namespace
}  // namespace fleetx::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fleetx::data::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
