// Sums of files, as lists of downloads give them.
#pragma once

#include <string>

namespace fleetx::data {

// 32 hex digits are an MD5, 64 a SHA-256; others are no sum. Upper and lower case are the same.
bool is_checksum(const std::string& text);
// Of the file, by the algorithm of `like`.
std::string checksum(const std::string& path, const std::string& like);
bool matches(const std::string& path, const std::string& sum);

}  // namespace fleetx::data
