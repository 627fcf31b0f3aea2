// Vocabularies and codes of tokenizers are read, or refused as damaged; what was read tokenizes any
// text and gives it back in pieces. The first byte chooses the kind of file; a zero byte ends it,
// and text follows.

#include "fleetx/base/error.h"
#include "fleetx/data/bpe.h"
#include "fleetx/data/utf8.h"
#include "fleetx/data/wordpiece.h"
#include "tests/fuzz/refusal.h"

namespace fleetx::data {
namespace {

void check_bpe(std::string_view file, const std::string& text) {
  const BpeCodes codes = BpeCodes::parse(file, "fuzz");
  FLEETX_CHECK(BpeCodes::parse(codes.text(), "again").merges == codes.merges);
  const Bpe bpe(codes, {});
  std::string whole, pieces = bpe.segment(text);
  for (const char c : text)
    if (c != ' ') whole += c;
  std::erase(pieces, ' ');
  // Marks of pieces that are not the last of a word are all that was added.
  FLEETX_CHECK(pieces.size() >= whole.size(), "text was lost");
}

void check(std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t zero = std::min(bytes.find('\0', 1), bytes.size());
  const std::string_view file = bytes.substr(1, zero - 1);
  const std::string text = replace_invalid_utf8(bytes.substr(std::min(zero + 1, bytes.size())));
  try {
    if (bytes[0] % 3 == 0) {
      const WordPiece tokenizer(Vocabulary::parse(file, "fuzz"));
      tokenizer.decode(tokenizer.encode(text));
    } else if (bytes[0] % 3 == 1) {
      check_bpe(file, text);
    } else {
      const Vocabulary vocabulary = parse_bpe_vocabulary(file, "fuzz", bytes[0]);
      const Bpe bpe(BpeCodes::parse("#version: 0.2\na b\nab c\nabc d</w>\n", "codes"), vocabulary);
      bpe.decode(bpe.encode(text));
    }
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
