#include "fleetx/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "fleetx/base/error.h"

namespace fleetx {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void refuse(std::string_view what, const std::string& path) {
  const int error = errno;
  const bool users = error == ENOENT || error == EACCES || error == ENOTDIR || error == EISDIR;
  fail(users ? Error::Kind::kInvalidArgument : Error::Kind::kUnsupported,
       str("cannot ", what, " ", path, ": ", reason(error)));
}

// The same, of a file that cannot be completed. Devices stay.
[[noreturn]] void remove_and_refuse(const std::string& path) {
  const int error = errno;
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) unlink(path.c_str());
  errno = error;
  refuse("write", path);
}

}  // namespace

FileReader::FileReader(const std::string& path)
    : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) refuse("open", path);
  struct stat info {};
  if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd_);
    fail(Error::Kind::kInvalidArgument, str("cannot open ", path, ": not a regular file"));
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

FileReader::~FileReader() { close(fd_); }

void FileReader::read_at(uint64_t offset, void* to, size_t bytes) const {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse("read", path_);
    check_file(got > 0, path_, ": ends at byte ", offset, ", ", bytes, " more were expected");
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
}

FileWriter::FileWriter(const std::string& path)
    : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (fd_ < 0) refuse("write", path);
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) close(fd_);
}

void FileWriter::write(const void* data, size_t bytes) {
  FLEETX_CHECK(fd_ >= 0, path_, " is finished");
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(fd_, from, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) remove_and_refuse(path_);
    from += done;
    bytes -= static_cast<size_t>(done);
  }
}

void FileWriter::finish() {
  FLEETX_CHECK(fd_ >= 0, path_, " is finished");
  if (fsync(fd_) != 0) remove_and_refuse(path_);
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0) remove_and_refuse(path_);
}

std::string read_file(const std::string& path, uint64_t limit) {
  const FileReader file(path);
  check_file(file.size() <= limit, path, ": has ", file.size(), " bytes, at most ", limit,
             " were expected");
  std::string text(file.size(), '\0');
  file.read_at(0, text.data(), text.size());
  return text;
}

void write_file(const std::string& path, std::string_view text) {
  FileWriter file(path);
  file.write(text);
  file.finish();
}

void sync_folder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) refuse("open", path);
  const int result = fsync(fd);
  close(fd);
  // Some network file systems cannot sync a folder and return EINVAL.
  if (result != 0 && errno != EINVAL) refuse("sync", path);
}

}  // namespace fleetx
