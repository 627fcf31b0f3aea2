#include "fleetx/data/characters.h"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <memory>

#include "fleetx/base/error.h"

namespace fleetx::data {
namespace {

const icu::Normalizer2& decomposition() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(status);
  FLEETX_CHECK(U_SUCCESS(status), u_errorName(status));
  return *nfd;
}

bool is_dropped(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  constexpr uint32_t kControl = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK | U_GC_CS_MASK;
  return c == 0 || c == 0xfffd || (U_GET_GC_MASK(static_cast<UChar32>(c)) & kControl) != 0;
}

bool is_space(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' ||
         u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE);
}

// The blocks that BERT's authors chose; Hangul, Hiragana and Katakana are written with spaces or
// have words.
bool is_ideograph(char32_t c) {
  const auto in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return in(0x4e00, 0x9fff) || in(0x3400, 0x4dbf) || in(0x20000, 0x2a6df) || in(0x2a700, 0x2b73f) ||
         in(0x2b740, 0x2b81f) || in(0x2b820, 0x2ceaf) || in(0xf900, 0xfaff) || in(0x2f800, 0x2fa1f);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return c > ' ' && c < 0x7f && !u_isalnum(static_cast<UChar32>(c));
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_P_MASK) != 0;
}

// Character by character. In a whole text, marks would also be put in order; that matters only for
// a few spacing marks (of musical notes, and U+302E, U+302F) next to each other.
icu::UnicodeString normalized(char32_t c, const CharOptions& o) {
  icu::UnicodeString text(static_cast<UChar32>(c));
  if (o.strip_accents) {
    icu::UnicodeString all;
    if (!decomposition().getDecomposition(static_cast<UChar32>(c), all)) all = text;
    text.remove();
    for (int32_t i = 0; i < all.length(); i = all.moveIndex32(i, 1))
      if (u_charType(all.char32At(i)) != U_NON_SPACING_MARK) text.append(all.char32At(i));
  }
  // For each by itself, so that no context changes it, as the end of a word does with a sigma.
  if (o.lowercase) text.toLower(icu::Locale::getRoot());
  return text;
}

}  // namespace

Characters::~Characters() {
  for (const auto& page : pages_) delete page.load();
}

const Characters::Page& Characters::make_page(size_t number) const {
  const std::lock_guard lock(making_);
  if (const Page* known = pages_[number].load()) return *known;
  auto page = std::make_unique<Page>();
  for (size_t i = 0; i < 256; ++i) {
    const auto c = static_cast<char32_t>(number << 8 | i);
    Entry& entry = page->entries[i];
    if (is_dropped(c) || is_space(c)) {
      entry.kind = is_dropped(c) ? CharKind::kNothing : CharKind::kSpace;
      continue;
    }
    const icu::UnicodeString text = normalized(c, options_);
    entry.begin = static_cast<uint16_t>(page->text.size());
    text.toUTF8String(page->text);
    entry.length = static_cast<uint8_t>(page->text.size() - entry.begin);
    const bool alone = is_ideograph(c) || is_punctuation(static_cast<char32_t>(text.char32At(0)));
    entry.kind = text.isEmpty() ? CharKind::kNothing : alone ? CharKind::kAlone : CharKind::kWord;
  }
  pages_[number].store(page.get(), std::memory_order_release);
  return *page.release();
}

}  // namespace fleetx::data
