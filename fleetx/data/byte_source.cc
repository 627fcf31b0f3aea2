#include "fleetx/data/byte_source.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/base/fd.h"
#include "fleetx/data/shell_command.h"

namespace fleetx::data {
namespace {

Fd open_file(const std::string& path) {
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  check_arg(static_cast<bool>(file), path, ": cannot be read: ", std::strerror(errno));
  return file;
}

size_t read_some(int fd, char* to, size_t most, const std::string& path) {
  for (;;) {
    const ssize_t got = ::read(fd, to, most);
    if (got >= 0) return static_cast<size_t>(got);
    check_arg(errno == EINTR, path, ": cannot be read: ", std::strerror(errno));
  }
}

class PlainFile final : public ByteSource {
 public:
  explicit PlainFile(const std::string& path) : path_(path), file_(open_file(path)) {}
  size_t read(char* to, size_t most) override { return read_some(file_.get(), to, most, path_); }

 private:
  std::string path_;
  Fd file_;
};

class PackedFile final : public ByteSource {
 public:
  PackedFile(const std::string& path, int filter)
      : path_(path), archive_(archive_read_new(), &archive_read_free) {
    constexpr size_t kBlock = size_t{1} << 16;
    FLEETX_CHECK(archive_ != nullptr, "libarchive gives no reader");
    const Fd readable = open_file(path);  // for an error of our own
    if (filter == ARCHIVE_FILTER_GZIP) archive_read_support_filter_gzip(archive_.get());
    if (filter == ARCHIVE_FILTER_ZSTD) archive_read_support_filter_zstd(archive_.get());
    archive_read_support_format_raw(archive_.get());
    archive_read_support_format_empty(archive_.get());
    check(archive_read_open_filename(archive_.get(), path.c_str(), kBlock));
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_.get(), &entry);
    ended_ = result == ARCHIVE_EOF;
    if (!ended_) check(result);
    check_file(ended_ || archive_filter_code(archive_.get(), 0) == filter, path_,
               ": not packed as its name says");
  }

  size_t read(char* to, size_t most) override {
    if (ended_) return 0;
    const la_ssize_t got = archive_read_data(archive_.get(), to, most);
    if (got < 0) check(static_cast<int>(got));
    return static_cast<size_t>(got);
  }

 private:
  void check(int result) const {
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) return;
    const char* text = archive_error_string(archive_.get());
    fail(Error::Kind::kCorrupt, str(path_, ": damaged: ", text != nullptr ? text : "unknown"));
  }

  std::string path_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  bool ended_ = false;
};

class CommandOutput final : public ByteSource {
 public:
  CommandOutput(const std::string& path, const std::string& command, const std::atomic<bool>* stop)
      : path_(path), stop_(stop), command_(command, open_file(path)) {}

  size_t read(char* to, size_t most) override {
    for (;;) {
      if (stop_ != nullptr && *stop_) return 0;
      pollfd waiting{command_.output(), POLLIN, 0};
      const int ready = poll(&waiting, 1, 50);
      FLEETX_CHECK(ready >= 0 || errno == EINTR, std::strerror(errno));
      if (ready <= 0) continue;
      const size_t got = read_some(command_.output(), to, most, path_);
      if (got == 0) finish();
      return got;
    }
  }

 private:
  // Its output has ended; it may take its time to do so itself.
  void finish() {
    while (!command_.ended()) {
      if (stop_ != nullptr && *stop_) return;
      usleep(1000);
    }
    check_arg(command_.succeeded(), "pipe_command '", command_.text(), "' ended with ",
              command_.status(), " on ", path_, "; its errors are above");
  }

  std::string path_;
  const std::atomic<bool>* stop_;
  ShellCommand command_;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path, const std::string& command,
                                       const std::atomic<bool>* stop) {
  const size_t first = command.find_first_not_of(" \t\n");
  const size_t last = command.find_last_not_of(" \t\n");
  if (first != std::string::npos && command.substr(first, last - first + 1) != "cat")
    return std::make_unique<CommandOutput>(path, command, stop);
  if (path.ends_with(".gz")) return std::make_unique<PackedFile>(path, ARCHIVE_FILTER_GZIP);
  if (path.ends_with(".zst")) return std::make_unique<PackedFile>(path, ARCHIVE_FILTER_ZSTD);
  return std::make_unique<PlainFile>(path);
}

}  // namespace fleetx::data
