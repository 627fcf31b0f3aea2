// Checksums of files, as in download lists.
#pragma once

#include <string>

namespace fleetx::data {

// 32 hex digits: MD5; 64: SHA-256; anything else is not a checksum. Case does not matter.
bool is_checksum(const std::string& text);
// The checksum of the file with the algorithm of `like`.
std::string checksum(const std::string& path, const std::string& like);
bool matches(const std::string& path, const std::string& sum);

}  // namespace fleetx::data
