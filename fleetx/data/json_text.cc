#include "fleetx/data/json_text.h"

#include <nlohmann/json.hpp>

#include "fleetx/base/error.h"
#include "fleetx/data/vocabulary.h"

namespace fleetx::data {
namespace {

using nlohmann::json;

void add_sentences(const std::string& text, std::vector<std::string>& to) {
  for (const std::string_view line : split_lines(text))
    if (line.find_first_not_of(" \t") != std::string_view::npos) to.emplace_back(line);
}

}  // namespace

std::vector<std::string> sentences_of_json(std::string_view line, const std::string& field) {
  const json value = json::parse(line, nullptr, false);
  check_file(!value.is_discarded(), "the line is not JSON");
  check_file(value.is_object(), "the line is JSON, but no object");
  const auto found = value.find(field);
  check_file(found != value.end(), "the object has no '", field, "'");
  std::vector<std::string> sentences;
  if (found->is_string()) {
    add_sentences(found->get_ref<const std::string&>(), sentences);
    return sentences;
  }
  check_file(found->is_array(), "'", field, "' is neither a text nor a list of texts");
  for (const json& item : *found) {
    check_file(item.is_string(), "'", field, "' has something that is no text");
    add_sentences(item.get_ref<const std::string&>(), sentences);
  }
  return sentences;
}

}  // namespace fleetx::data
