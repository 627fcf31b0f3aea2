#include "fleetx/data/line_format.h"

#include "fleetx/data/numbers.h"

namespace fleetx::data {
namespace {

// Damaged files hold anything; messages are ASCII.
std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c != '\t' && (c < ' ' || c > '~')) c = '?';
  return out;
}

}  // namespace

std::string word_at(const char* at) {
  constexpr size_t kMost = 40;
  const char* end = at;
  while (*end != '\n' && !is_blank(*end) && end - at < static_cast<ptrdiff_t>(kMost)) ++end;
  return printable({at, end});
}

std::string describe_bad_line(const std::string& name, int64_t number, std::string_view line,
                              const BadLine& why) {
  constexpr size_t kShown = 80;
  line = line.substr(0, line.find('\n'));
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return str(name, ":", number, ": sample '", printable(line.substr(0, kShown)),
             line.size() > kShown ? "...': " : "': ", why.what());
}

Samples parse_lines(std::string_view text, const LineFormat& format, const std::string& name) {
  Samples samples(format.slots());
  const std::string lines = std::string(text) + '\n' + std::string(kPastEnd, '\0');
  const char* const end = lines.data() + text.size() + 1;
  int64_t number = 1;
  for (const char* at = lines.data(); at != end; ++at, ++number) {
    const char* const begin = skip_blanks(at);
    if (*begin == '\n') {
      at = begin;
      continue;
    }
    try {
      at = format.read(at, samples);
    } catch (const BadLine& why) {
      fail(Error::Kind::kCorrupt, describe_bad_line(name, number, at, why));
    }
    ++samples.count;
  }
  return samples;
}

}  // namespace fleetx::data
