// The text of a JSON line: {"text": "First sentence.\nSecond one.", ...}. The field may also be a
// list of strings, one a sentence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fleetx::data {

// Its sentences; newlines separate them. Empty ones are left out. A line that is no JSON object
// with such a field is kCorrupt and says why.
std::vector<std::string> sentences_of_json(std::string_view line, const std::string& field);

}  // namespace fleetx::data
