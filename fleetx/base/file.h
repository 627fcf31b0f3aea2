// File I/O with errors that name the path and the system's reason. A missing file is
// kInvalidArgument; other errors of the system (disk full, I/O error) are kUnsupported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fleetx {

// A file descriptor that closes itself.
class FileReader {
 public:
  explicit FileReader(const std::string& path);  // regular files only
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened
  // Reads all bytes, or throws kCorrupt if the file has become shorter.
  void read_at(uint64_t offset, void* to, size_t bytes) const;

 private:
  std::string path_;
  int fd_;
  uint64_t size_ = 0;
};

// Creates or replaces a file. Without finish() the data may be incomplete.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Flushes to disk (fsync).
  void finish();

 private:
  std::string path_;
  int fd_;
};

// The whole file. A file longer than `limit` is kCorrupt, so that a wrong file cannot exhaust
// memory.
std::string read_file(const std::string& path, uint64_t limit = uint64_t{1} << 30);
void write_file(const std::string& path, std::string_view text);
// Flushes the entries of a folder to disk (fsync), so that renames survive a power failure.
void sync_folder(const std::string& path);

}  // namespace fleetx
