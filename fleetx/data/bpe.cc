#include "fleetx/data/bpe.h"

#include <algorithm>
#include <climits>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"
#include "fleetx/data/numbers.h"
#include "fleetx/data/utf8.h"
#include "fleetx/data/words.h"

namespace fleetx::data {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 28;  // of a file
constexpr size_t kMostBytesOfWord = 4096;

void check_utf8(std::string_view line, const std::string& name, size_t number) {
  check_file(find_invalid_utf8(line) == std::string_view::npos, name, ":", number,
             ": the line is not UTF-8");
}

}  // namespace

BpeCodes BpeCodes::parse(std::string_view text, const std::string& name) {
  BpeCodes codes{.separate_end = true, .name = name};  // files of 0.1 do not say a version
  const std::vector<std::string_view> lines = split_lines(text);
  size_t first = 0;
  if (!lines.empty() && lines[0].starts_with("#version:")) {
    std::string_view version = lines[0].substr(std::string_view("#version:").size());
    version.remove_prefix(std::min(version.find_first_not_of(' '), version.size()));
    check_file(version == "0.1" || version == "0.2", name, ":1: version '", version,
               "' of codes; known: 0.1, 0.2");
    codes.separate_end = version == "0.1";
    first = 1;
  }
  for (size_t i = first; i < lines.size(); ++i) {
    check_utf8(lines[i], name, i + 1);
    const size_t space = lines[i].find(' ');
    const bool two = space != std::string_view::npos && space > 0 && space + 1 < lines[i].size() &&
                     lines[i].find(' ', space + 1) == std::string_view::npos;
    check_file(two, name, ":", i + 1, ": '", lines[i].substr(0, 40),
               "' is not two symbols with a space between");
    codes.merges.emplace_back(lines[i].substr(0, space), lines[i].substr(space + 1));
  }
  check_file(!codes.merges.empty(), name, ": has no merges");
  return codes;
}

BpeCodes BpeCodes::load(const std::string& path) {
  return parse(read_file(path, kMostBytes), path);
}

std::string BpeCodes::text() const {
  std::string out = separate_end ? "#version: 0.1\n" : "#version: 0.2\n";
  for (const auto& [a, b] : merges) out += a + " " + b + "\n";
  return out;
}

Vocabulary parse_bpe_vocabulary(std::string_view text, const std::string& name, int64_t min_count) {
  std::vector<std::string> tokens;
  const std::vector<std::string_view> lines = split_lines(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    check_utf8(lines[i], name, i + 1);
    const size_t space = lines[i].find(' ');
    const std::string_view token = lines[i].substr(0, space);
    check_file(!token.empty(), name, ":", i + 1, ": the line begins with no token");
    int64_t count = INT64_MAX;
    if (space != std::string_view::npos) {
      const std::string number = std::string(lines[i].substr(space + 1)) + std::string(16, '\n');
      const char* end = read_int(number.data(), count);
      check_file(end != nullptr && *end == '\n' && count >= 0, name, ":", i + 1, ": '",
                 lines[i].substr(space + 1, 40), "' is not how often '", token, "' occurs");
    }
    if (count >= min_count) tokens.emplace_back(token);
  }
  check_file(!lines.empty(), name, ": has no tokens; expected one a line");
  std::vector<std::string> all;
  for (const std::string_view special : {kBegin, kEnd, kUnknown})
    if (std::ranges::find(tokens, special) == tokens.end()) all.emplace_back(special);
  all.insert(all.end(), tokens.begin(), tokens.end());
  return Vocabulary(std::move(all), name);
}

Vocabulary load_bpe_vocabulary(const std::string& path, int64_t min_count) {
  return parse_bpe_vocabulary(read_file(path, kMostBytes), path, min_count);
}

Bpe::Bpe(const BpeCodes& codes, Vocabulary vocabulary)
    : Tokenizer(std::move(vocabulary)), separate_end_(codes.separate_end) {
  const auto add = [this](const std::string& text) {
    const auto [found, is_new] = symbols_.emplace(text, static_cast<int32_t>(texts_.size()));
    if (is_new) {
      texts_.push_back(text);
      parts_.emplace_back(-1, -1);
    }
    return found->second;
  };
  int32_t rank = 0;
  for (const auto& [left, right] : codes.merges) {
    const int32_t a = add(left), b = add(right), joined = add(left + right);
    // The first of equal pairs counts; a symbol falls apart into the last pair that makes it.
    if (merges_.emplace(key(a, b), Merge{rank++, joined}).second)
      parts_[static_cast<size_t>(joined)] = {a, b};
  }
  if (this->vocabulary().size() > 0)
    unknown_ = this->vocabulary().at(kUnknown, "a piece that is in no line");
}

int32_t Bpe::symbol_of(std::string_view text) const {
  const auto found = symbols_.find(text);
  return found == symbols_.end() ? -1 : found->second;
}

void Bpe::split(std::string_view word, Pieces& pieces) const {
  pieces.clear();
  std::string text;
  for (size_t begin = 0; begin < word.size();) {
    const char* at = word.data() + begin;
    next_code_point(at);
    const auto end = static_cast<size_t>(at - word.data());
    text.assign(word.substr(begin, end - begin));
    if (end == word.size() && !separate_end_) text += kWordEnd;
    pieces.push_back({symbol_of(text), begin, end});
    begin = end;
  }
  if (separate_end_) pieces.push_back({symbol_of(kWordEnd), word.size(), word.size()});
}

void Bpe::merge(Pieces& pieces) const {
  while (pieces.size() > 1) {
    Merge best{INT_MAX, -1};
    int32_t left = -1, right = -1;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      if (pieces[i].symbol < 0 || pieces[i + 1].symbol < 0) continue;
      const auto found = merges_.find(key(pieces[i].symbol, pieces[i + 1].symbol));
      if (found == merges_.end() || found->second.rank >= best.rank) continue;
      best = found->second, left = pieces[i].symbol, right = pieces[i + 1].symbol;
    }
    if (best.joined < 0) return;
    size_t to = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const bool here =
          i + 1 < pieces.size() && pieces[i].symbol == left && pieces[i + 1].symbol == right;
      pieces[to++] = here ? Piece{best.joined, pieces[i].begin, pieces[i + 1].end} : pieces[i];
      i += here;
    }
    pieces.resize(to);
  }
}

template <class Function>
void Bpe::give(std::string_view word, const Piece& piece, const Function& function) const {
  std::string text(word.substr(piece.begin, piece.end - piece.begin));
  const bool last = piece.end == word.size();
  if (!last) text += kNotLast;
  const auto [a, b] = piece.symbol < 0 ? std::pair<int32_t, int32_t>(-1, -1)
                                       : parts_[static_cast<size_t>(piece.symbol)];
  if (unknown_ < 0 || a < 0 || vocabulary().find(text) >= 0) {
    function(text);
    return;
  }
  const std::string& left = texts_[static_cast<size_t>(a)];
  const size_t middle = std::min(piece.begin + left.size(), piece.end);
  if (middle == piece.end) {  // the right part is the mark of the end alone
    give(word, {a, piece.begin, piece.end}, function);
    return;
  }
  give(word, {a, piece.begin, middle}, function);
  give(word, {b, middle, piece.end}, function);
}

template <class Function>
void Bpe::for_each_piece(std::string_view word, Pieces& scratch, const Function& function) const {
  while (word.size() > kMostBytesOfWord) {
    size_t cut = kMostBytesOfWord;
    while ((static_cast<unsigned char>(word[cut]) & 0xc0) == 0x80) --cut;
    for_each_piece(word.substr(0, cut), scratch, function);
    word.remove_prefix(cut);
  }
  split(word, scratch);
  merge(scratch);
  for (const Piece& piece : scratch)
    if (piece.begin < piece.end) give(word, piece, function);
}

std::string Bpe::segment(std::string_view line) const {
  const size_t invalid = find_invalid_utf8(line);
  check_arg(invalid == std::string_view::npos, "the line is not UTF-8 at byte ", invalid);
  std::string out;
  Pieces scratch;
  for_each_between_spaces(line, [&](std::string_view word) {
    for_each_piece(word, scratch, [&](const std::string& piece) {
      if (!out.empty()) out += ' ';
      out += piece;
    });
  });
  return out;
}

void Bpe::encode_valid(std::string_view text, std::vector<int32_t>& to) const {
  check_arg(unknown_ >= 0, "a Bpe without a vocabulary has no numbers; use segment()");
  Pieces scratch;
  for_each_between_spaces(text, [&](std::string_view word) {
    for_each_piece(word, scratch, [&](const std::string& piece) {
      const int32_t id = vocabulary().find(piece);
      to.push_back(id >= 0 ? id : unknown_);
    });
  });
}

std::string Bpe::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  bool goes_on = true;
  for (const int32_t id : tokens) {
    std::string_view token = vocabulary().token(id);
    if (!goes_on) text += ' ';
    goes_on = token.ends_with(kNotLast);
    if (goes_on) token.remove_suffix(kNotLast.size());
    text += token;
  }
  return text;
}

}  // namespace fleetx::data
