#include "fleetx/data/text_lines.h"

#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/base/log.h"
#include "fleetx/data/utf8.h"

namespace fleetx::data {
namespace {

constexpr size_t kAtOnce = size_t{1} << 18;
constexpr size_t kMaxLine = size_t{1} << 26;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

BadText bad_text_of(std::string_view word, std::string_view option) {
  if (word == "stop") return BadText::kStop;
  if (word == "skip") return BadText::kSkip;
  check_arg(word == "replace", option, " is '", word, "'; known: stop, skip, replace");
  return BadText::kReplace;
}

TextLines::TextLines(const std::string& path, BadText policy)
    : TextLines(open_bytes(path, "", nullptr), path, policy) {}

TextLines::TextLines(std::unique_ptr<ByteSource> source, std::string name, BadText policy)
    : name_(std::move(name)), policy_(policy), source_(std::move(source)), text_(kAtOnce, '\0') {}

// The next line as it is in the file.
bool TextLines::read_line() {
  for (size_t searched = at_;;) {
    const auto* end =
        static_cast<const char*>(std::memchr(text_.data() + searched, '\n', filled_ - searched));
    if (end == nullptr && ended_ && at_ < filled_) end = text_.data() + filled_;
    if (end != nullptr) {
      line_ = {text_.data() + at_, end};
      at_ = std::min(filled_, static_cast<size_t>(end - text_.data()) + 1);
      ++number_;
      return true;
    }
    if (ended_) return false;
    std::memmove(text_.data(), text_.data() + at_, filled_ - at_);
    filled_ -= at_;
    at_ = 0;
    searched = filled_;
    check_file(filled_ < kMaxLine, name_, ":", number_ + 1, ": a line of more than ", kMaxLine,
               " bytes");
    if (filled_ == text_.size()) text_.resize(2 * filled_);
    const size_t got = source_->read(text_.data() + filled_, text_.size() - filled_);
    ended_ = got == 0;
    filled_ += got;
  }
}

bool TextLines::next() {
  while (read_line()) {
    if (number_ == 1 && line_.starts_with(kByteOrderMark)) line_.remove_prefix(3);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    const size_t invalid = find_invalid_utf8(line_);
    if (invalid == std::string_view::npos) return true;
    bad_line(str("byte ", invalid + 1, " is not UTF-8"));
    if (policy_ != BadText::kReplace) continue;
    repaired_ = replace_invalid_utf8(line_);
    line_ = repaired_;
    return true;
  }
  return false;
}

void TextLines::bad_line(const std::string& why) {
  const std::string what = str(name_, ":", number_, ": ", why);
  if (policy_ == BadText::kStop)
    fail(Error::Kind::kCorrupt, what + " (bad_lines=skip or bad_lines=replace goes on)");
  if (bad_++ == 0) first_bad_ = what;
}

void TextLines::warn() const {
  if (bad_ == 0) return;
  log::warning("text", bad_,
               policy_ == BadText::kSkip ? " lines left out" : " lines repaired or left out",
               "; the first: ", first_bad_);
}

}  // namespace fleetx::data
