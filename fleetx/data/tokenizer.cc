#include "fleetx/data/tokenizer.h"

#include "fleetx/base/error.h"
#include "fleetx/data/utf8.h"

namespace fleetx::data {

void Tokenizer::encode(std::string_view text, std::vector<int32_t>& to) const {
  const size_t invalid = find_invalid_utf8(text);
  check_arg(invalid == std::string_view::npos, "the text is not UTF-8 at byte ", invalid, " of ",
            text.size());
  encode_valid(text, to);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  encode(text, tokens);
  return tokens;
}

}  // namespace fleetx::data
