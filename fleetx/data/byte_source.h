// The bytes of a file of samples, one after the other: as they are, unpacked (*.gz, *.zst), or as a
// shell command prints them that has the file as its standard input.
//
// Errors: kInvalidArgument for a file that is not there and a command that fails, kCorrupt for a
// damaged compressed file. Used by one thread; another one may set `stop`.
#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace fleetx::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At least one byte; 0: the end, or stopped.
  virtual size_t read(char* to, size_t most) = 0;
};

// An empty command, or `cat`, is not run: the file is read directly. `stop`, if given, ends waiting
// for a command, and the command, within 0.1 s.
std::unique_ptr<ByteSource> open_bytes(const std::string& path, const std::string& command,
                                       const std::atomic<bool>* stop);

}  // namespace fleetx::data
