#include "fleetx/data/vocabulary.h"

#include <filesystem>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"
#include "fleetx/data/utf8.h"

namespace fleetx::data {
namespace {

constexpr uint64_t kMostFileBytes = uint64_t{1} << 28;

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Vocabulary::Vocabulary(std::vector<std::string> tokens, std::string name)
    : name_(std::move(name)), tokens_(std::move(tokens)) {
  check_file(!tokens_.empty(), name_, ": has no tokens; expected one a line");
  check_file(tokens_.size() <= INT32_MAX, name_, ": has ", tokens_.size(), " tokens");
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& token = tokens_[i];
    check_file(!token.empty(), name_, ":", i + 1, ": the line is empty; expected a token");
    check_file(find_invalid_utf8(token) == std::string_view::npos, name_, ":", i + 1,
               ": the token is not UTF-8");
    const auto [known, is_new] = ids_.emplace(token, static_cast<int32_t>(i));
    check_file(is_new, name_, ":", i + 1, ": '", token, "' is already in line ", known->second + 1);
  }
}

Vocabulary Vocabulary::parse(std::string_view text, const std::string& name) {
  const std::vector<std::string_view> lines = split_lines(text);
  return Vocabulary({lines.begin(), lines.end()}, name);
}

Vocabulary Vocabulary::load(const std::string& path) {
  return parse(read_file(path, kMostFileBytes), path);
}

void Vocabulary::save(const std::string& path) const {
  std::string text;
  for (const std::string& token : tokens_) text += token + "\n";
  write_file(path, text);
}

const std::string& Vocabulary::token(int64_t id) const {
  check_arg(id >= 0 && id < size(), name_, ": no token ", id, "; there are ", size());
  return tokens_[static_cast<size_t>(id)];
}

int32_t Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

int32_t Vocabulary::at(std::string_view token, std::string_view needed_for) const {
  const int32_t id = find(token);
  check_arg(id >= 0, name_, ": has no '", token, "', which ", needed_for, " needs; ",
            "add it as a line, or give the vocabulary that belongs to the model");
  return id;
}

}  // namespace fleetx::data
