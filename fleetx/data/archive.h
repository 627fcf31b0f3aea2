// Extracts untrusted archives: tar (plain, gzip, bzip2, xz, zstd) and zip, by libarchive.
#pragma once

#include <cstdint>
#include <string>

namespace fleetx::data {

bool is_archive(const std::string& name);  // by its ending

// A relative path that stays below its folder: no "..", not absolute.
bool is_inside(const std::string& path);

struct UnpackLimits {
  uint64_t bytes = uint64_t{16} << 30;
  uint64_t files = 5'000'000;
};

// Extracts the files of the archive into `folder` and returns their number. Only files and folders
// are accepted: a link, a device, a path outside, more than the limits, or a damaged archive is
// kCorrupt. Files written before the error stay.
uint64_t unpack(const std::string& archive, const std::string& folder, UnpackLimits limits = {});

}  // namespace fleetx::data
