// Archives for tests, good and evil.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <string>
#include <vector>

#include "fleetx/base/error.h"

namespace fleetx::testing {

struct Member {
  std::string name;
  std::string body = {};
  std::string symlink = {};
  std::string hardlink = {};
};

// The ending of `path` decides: .tar.gz is compressed, .zip is a zip.
inline void make_archive(const std::string& path, const std::vector<Member>& members) {
  archive* a = archive_write_new();
  if (path.ends_with(".zip")) {
    archive_write_set_format_zip(a);
  } else {
    archive_write_set_format_pax_restricted(a);
    if (path.ends_with("gz")) archive_write_add_filter_gzip(a);
  }
  FLEETX_CHECK(archive_write_open_filename(a, path.c_str()) == ARCHIVE_OK, path);
  for (const Member& m : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, m.name.c_str());
    archive_entry_set_perm(entry, 0644);
    if (!m.symlink.empty()) {
      archive_entry_set_filetype(entry, AE_IFLNK);
      archive_entry_set_symlink(entry, m.symlink.c_str());
    } else if (!m.hardlink.empty()) {
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_entry_set_hardlink(entry, m.hardlink.c_str());
    } else {
      archive_entry_set_filetype(entry, m.name.ends_with('/') ? AE_IFDIR : AE_IFREG);
      archive_entry_set_size(entry, static_cast<la_int64_t>(m.body.size()));
    }
    FLEETX_CHECK(archive_write_header(a, entry) == ARCHIVE_OK, archive_error_string(a));
    if (!m.body.empty()) archive_write_data(a, m.body.data(), m.body.size());
    archive_entry_free(entry);
  }
  archive_write_close(a);
  archive_write_free(a);
}

}  // namespace fleetx::testing
