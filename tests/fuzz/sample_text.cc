// Any file of samples is read, or refused as damaged, in every format; where damaged lines are left
// out, the others are read. The first byte chooses format and policy.

#include "fleetx/data/formats.h"
#include "fleetx/data/sample_file.h"
#include "tests/fuzz/refusal.h"
#include "tests/support/memory_source.h"

namespace fleetx::data {
namespace {

std::shared_ptr<const LineFormat> format_of(int kind) {
  if (kind == 1) {
    std::vector<Slot> slots{{"numbers", DType::kF32, 13}};
    for (int i = 0; i < 26; ++i) slots.push_back({"c" + std::to_string(i), DType::kI64, 1});
    slots.push_back({"label", DType::kI64, 1});
    return make_format("criteo", slots, 1000);
  }
  if (kind == 2)
    return make_format(
        "libsvm", {{"y", DType::kF32, 1}, {"index", DType::kI64, -1}, {"value", DType::kF32, -1}},
        1);
  return make_format(
      "multi_slot",
      {{"ids", DType::kI64, -1}, {"dense", DType::kF32, 2}, {"label", DType::kI64, 1}}, 1);
}

void check_columns(const Samples& samples) {
  for (const Column& c : samples.columns)
    FLEETX_CHECK(c.values.size() == c.begin(static_cast<size_t>(samples.count)));
}

void check(std::string_view bytes) {
  if (bytes.empty()) return;
  const bool skip = (bytes[0] & 4) != 0;
  const auto format = format_of(bytes[0] & 3);
  Samples samples(format->slots());
  try {
    SampleFile file(std::make_unique<testing::MemorySource>(bytes.substr(1)), "fuzz",
                    {.format = format, .bad_lines = skip ? BadLines::kSkip : BadLines::kFail});
    while (file.read(3, samples) > 0) check_columns(samples);
  } catch (const Error& e) {
    // kInvalidArgument: a binary file with other slots.
    testing::expect_refusal(e, {Error::Kind::kCorrupt, Error::Kind::kInvalidArgument});
  }
}

}  // namespace
}  // namespace fleetx::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fleetx::data::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
