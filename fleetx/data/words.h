// The words of a text. BERT's basic tokenization: normalized (characters.h), split at spaces and
// around ideographs and punctuation. That of subword-nmt: what is between spaces.
//
//   for_each_word("Don't stop, Zoë!", characters, [](std::string_view word) { ... });
//   // don ' t stop , zoe !
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "fleetx/data/characters.h"
#include "fleetx/data/utf8.h"

namespace fleetx::data {

// `text` must be UTF-8. The word is valid until the function returns.
template <class Function>
void for_each_word(std::string_view text, const Characters& characters, const Function& function) {
  const Characters::Page& ascii = characters.ascii();
  std::string word;
  const auto end_word = [&] {
    if (word.empty()) return;
    function(std::string_view(word));
    word.clear();
  };
  const char *at = text.data(), *const end = at + text.size();
  while (at < end) {
    const char32_t c = next_code_point(at);
    const Characters::Page& page = c < 0x80 ? ascii : characters.page(c);
    const Characters::Entry& entry = page.entries[c & 0xff];
    switch (entry.kind) {
      case CharKind::kWord:
        if (entry.length == 1)
          word += page.text[entry.begin];
        else
          word += page.text_of(entry);
        break;
      case CharKind::kNothing: break;
      case CharKind::kSpace: end_word(); break;
      case CharKind::kAlone:
        end_word();
        function(page.text_of(entry));
        break;
    }
  }
  end_word();
}

// Words between spaces, as subword-nmt splits; other white space belongs to words.
template <class Function>
void for_each_between_spaces(std::string_view line, const Function& function) {
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) function(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
}

}  // namespace fleetx::data
