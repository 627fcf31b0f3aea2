#include "fleetx/data/sample_file.h"

#include <cstring>

#include "fleetx/data/numbers.h"

namespace fleetx::data {
namespace {

constexpr size_t kText = size_t{1} << 18;  // read at once: it stays in the cache of a core
constexpr size_t kMaxLine = size_t{1} << 26;

std::string name_for_messages(const std::string& path, const std::string& command) {
  return command.empty() || command == "cat" ? path : str(path, " (through '", command, "')");
}

}  // namespace

SampleFile::SampleFile(const std::string& path, const SampleFileOptions& options)
    : SampleFile(open_bytes(path, options.command, options.stop),
                 name_for_messages(path, options.command), options) {}

SampleFile::SampleFile(std::unique_ptr<ByteSource> source, std::string name,
                       SampleFileOptions options)
    : options_(std::move(options)),
      name_(std::move(name)),
      source_(std::move(source)),
      text_(kText + 1 + kPastEnd, '\0'),
      at_(text_.data()),
      lines_(at_) {
  const auto [index, count] = options_.share;
  check_arg(index >= 0 && index < count, name_, ": share ", index, " of ", count);
  // No more than it takes to tell: a command may print one line and think about the next.
  const auto begin = [&] { return std::string_view(text_.data(), filled_); };
  while (!ended_ && filled_ < kBinaryMagic.size() && kBinaryMagic.starts_with(begin())) read_more();
  if (!begin().starts_with(kBinaryMagic)) return;
  binary_ = std::make_unique<BinaryReader>(std::move(source_), text_.substr(0, filled_), name_,
                                           options_.format->slots());
}

// Reads on until there is at least one more whole line. False: there is none.
bool SampleFile::fill() {
  filled_ = static_cast<size_t>(text_.data() + filled_ - at_);
  std::memmove(text_.data(), at_, filled_);
  const void* end = nullptr;
  for (size_t searched = 0;;) {
    end = memrchr(text_.data() + searched, '\n', filled_ - searched);
    if (end != nullptr || (ended_ && filled_ == 0)) break;
    searched = filled_;
    if (ended_)
      text_[filled_++] = '\n';  // that the last line does not have
    else
      read_more();
  }
  at_ = lines_ = text_.data();
  if (end != nullptr) lines_ = static_cast<const char*>(end) + 1;
  return end != nullptr;
}

void SampleFile::read_more() {
  constexpr size_t kAfter = 1 + kPastEnd;  // a newline, and what numbers.h asks for
  if (filled_ + kAfter >= text_.size()) {
    check_file(filled_ < kMaxLine, name_, ":", number_, ": a line of more than ", kMaxLine,
               " bytes");
    text_.resize(2 * filled_ + kAfter);
  }
  const size_t got = source_->read(text_.data() + filled_, text_.size() - kAfter - filled_);
  filled_ += got;
  ended_ = got == 0;
}

void SampleFile::skip_or_fail(const BadLine& why, Samples& to) {
  const auto* end = static_cast<const char*>(rawmemchr(at_, '\n'));
  std::string what = describe_bad_line(name_, number_, {at_, end}, why);
  if (options_.bad_lines == BadLines::kFail) fail(Error::Kind::kCorrupt, what);
  to.drop_incomplete();
  if (skipped_++ == 0) first_skipped_ = std::move(what);
  at_ = end;
}

int64_t SampleFile::read_text(int64_t n, Samples& to) {
  const LineFormat& format = *options_.format;
  int64_t done = 0;
  for (; done < n; ++at_, ++number_) {
    if (at_ == lines_ && (stopped() || !fill())) break;
    if (!is_mine()) {
      at_ = static_cast<const char*>(rawmemchr(at_, '\n'));
      continue;
    }
    if (const char* begin = skip_blanks(at_); *begin == '\n') {
      at_ = begin;
      continue;
    }
    try {
      at_ = format.read(at_, to);
      ++to.count;
      ++done;
    } catch (const BadLine& why) {
      skip_or_fail(why, to);
    }
  }
  return done;
}

int64_t SampleFile::read_binary(int64_t n, Samples& to) {
  if (options_.share.count == 1) return binary_->read(n, to);
  int64_t done = 0;
  while (done < n) {
    Samples some(options_.format->slots());
    const int64_t got = binary_->read(n - done, some);
    if (got == 0) break;
    for (int64_t i = 0; i < got; ++i, ++number_) {
      if (!is_mine()) continue;
      to.append(some, i, 1);
      ++done;
    }
  }
  return done;
}

int64_t SampleFile::read(int64_t n, Samples& to) {
  if (stopped()) return 0;
  return binary_ ? read_binary(n, to) : read_text(n, to);
}

}  // namespace fleetx::data
