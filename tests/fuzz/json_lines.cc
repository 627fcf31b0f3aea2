// Any bytes as a file of text, with each policy; each of its lines as JSON. The first byte chooses
// the policy.

#include "fleetx/base/error.h"
#include "fleetx/data/json_text.h"
#include "fleetx/data/text_lines.h"
#include "fleetx/data/utf8.h"
#include "tests/fuzz/refusal.h"
#include "tests/support/memory_source.h"

namespace fleetx::data {
namespace {

void check(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto policy = static_cast<BadText>(static_cast<unsigned char>(bytes[0]) % 3);
  try {
    TextLines lines(std::make_unique<testing::MemorySource>(bytes.substr(1)), "fuzz", policy);
    while (lines.next()) {
      FLEETX_CHECK(find_invalid_utf8(lines.line()) == std::string_view::npos);
      try {
        for (const std::string& sentence : sentences_of_json(lines.line(), "text"))
          FLEETX_CHECK(find_invalid_utf8(sentence) == std::string_view::npos);
      } catch (const Error& e) {
        if (e.kind() == Error::Kind::kInternal) throw;
        lines.bad_line(e.what());
      }
    }
  } catch (const Error& e) {
    testing::expect_refusal(e);
  }
}

}  // namespace
}  // namespace fleetx::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fleetx::data::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
