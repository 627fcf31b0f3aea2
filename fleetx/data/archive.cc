#include "fleetx/data/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"

namespace fleetx::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = size_t{1} << 16;

class Unpacker {
 public:
  Unpacker(const std::string& path, const std::string& folder, UnpackLimits limits)
      : path_(path), folder_(folder), limits_(limits), archive_(archive_read_new(), free_archive) {
    FLEETX_CHECK(archive_ != nullptr, "libarchive gives no reader");
    archive_read_support_filter_all(archive_.get());
    archive_read_support_format_tar(archive_.get());
    archive_read_support_format_zip(archive_.get());
    const int result = archive_read_open_filename(archive_.get(), path.c_str(), kBlock);
    check_file(result == ARCHIVE_OK, path_, ": not an archive or damaged: ", reason());
  }

  uint64_t run() {
    archive_entry* entry = nullptr;
    for (;;) {
      const int result = archive_read_next_header(archive_.get(), &entry);
      if (result == ARCHIVE_EOF) break;
      check_file(result == ARCHIVE_OK || result == ARCHIVE_WARN, path_, ": damaged: ", reason());
      take(entry);
    }
    sync();
    return files_;
  }

 private:
  static void free_archive(archive* a) { archive_read_free(a); }

  std::string reason() const {
    const char* text = archive_error_string(archive_.get());
    return text != nullptr ? text : "unknown";
  }

  void take(archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    const std::string name = raw != nullptr ? raw : "";
    check_file(is_inside(name), path_, ": '", name, "' would be written outside the folder");
    check_file(archive_entry_hardlink(entry) == nullptr, path_, ": '", name, "' is a link");
    const auto type = archive_entry_filetype(entry);
    const fs::path to = fs::path(folder_) / name;
    if (type == AE_IFDIR) {
      make_folder(to);
      return;
    }
    check_file(type == AE_IFREG, path_, ": '", name,
               "' is neither a file nor a folder (links and devices are not unpacked)");
    check_file(++files_ <= limits_.files, path_, ": has more than ", limits_.files, " files");
    make_folder(to.parent_path());
    write(name, to.string());
  }

  void make_folder(const fs::path& path) {
    if (path == last_) return;  // most files are in the folder of the file before
    std::error_code error;
    fs::create_directories(path, error);
    if (error)
      fail(Error::Kind::kUnsupported,
           str("cannot make the folder ", path.string(), ": ", error.message()));
    last_ = path;
  }

  void write(const std::string& name, const std::string& to) {
    // Do not follow an existing symbolic link.
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(to, ignored))) fs::remove(to, ignored);
    FileWriter file(to);
    static thread_local char block[kBlock];
    for (;;) {
      const la_ssize_t got = archive_read_data(archive_.get(), block, kBlock);
      if (got == 0) return;
      check_file(got > 0, path_, ": '", name, "' is damaged: ", reason());
      bytes_ += static_cast<uint64_t>(got);
      check_file(bytes_ <= limits_.bytes, path_, ": holds more than ", limits_.bytes, " bytes");
      file.write(block, static_cast<size_t>(got));
    }
  }

  // One sync for all files instead of one for each.
  void sync() const {
    const int fd = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool ok = fd >= 0 && syncfs(fd) == 0;
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!ok)
      fail(Error::Kind::kUnsupported,
           str("cannot write ", folder_, ": ", std::generic_category().message(error)));
  }

  const std::string path_, folder_;
  const UnpackLimits limits_;
  const std::unique_ptr<archive, void (*)(archive*)> archive_;
  fs::path last_;
  uint64_t files_ = 0, bytes_ = 0;
};

}  // namespace

bool is_archive(const std::string& name) {
  for (const char* ending : {".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".zip"})
    if (name.ends_with(ending)) return true;
  return false;
}

bool is_inside(const std::string& path) {
  const fs::path p(path);
  return !path.empty() && path.find('\0') == std::string::npos && p.is_relative() &&
         std::none_of(p.begin(), p.end(), [](const fs::path& part) { return part == ".."; });
}

uint64_t unpack(const std::string& archive, const std::string& folder, UnpackLimits limits) {
  return Unpacker(archive, folder, limits).run();
}

}  // namespace fleetx::data
