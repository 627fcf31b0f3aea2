// Archives from strangers: tar (plain, gzip, bzip2, xz, zstd) and zip, by libarchive.
#pragma once

#include <cstdint>
#include <string>

namespace fleetx::data {

bool is_archive(const std::string& name);  // by its ending

// A relative path that stays below the folder it is put into: no "..", not absolute.
bool is_inside(const std::string& path);

struct UnpackLimits {
  uint64_t bytes = uint64_t{16} << 30;
  uint64_t files = 5'000'000;
};

// Writes the files of the archive below `folder` and returns their number. Only files and folders
// come out: a link, a device, a path that leads outside, or more than the limits is kCorrupt and
// named, and so is a damaged archive. What was written before stays.
uint64_t unpack(const std::string& archive, const std::string& folder, UnpackLimits limits = {});

}  // namespace fleetx::data
