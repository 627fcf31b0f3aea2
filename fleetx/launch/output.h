// The output of one process: written directly to its log file, or read by the launcher, which
// writes the log and shows it. In the second case it is a pipe, or a pseudo-terminal if the
// launcher has a terminal, so that the program is line-buffered as if it ran alone.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/fd.h"

namespace fleetx::launch {

class Output {
 public:
  enum class Kind { kFile, kPipe, kTerminal };
  Output(const std::string& log_path, bool append, Kind kind);

  int for_child() const { return writer_ ? writer_.get() : log_.get(); }
  void started();  // the child has its copy of for_child()
  int reader() const { return reader_.get(); }
  // Copies available output to the log and to `show`.
  void forward(const std::function<void(std::string_view)>& show);
  void finish();

 private:
  Fd log_, reader_, writer_;
};

// Removes logs of an earlier run from this folder, except those in `keep` and those that a running
// job still writes.
void remove_old_logs(const std::string& folder, const std::vector<std::string>& keep);

// The last lines of a text file, indented.
std::string last_lines(const std::string& path);

}  // namespace fleetx::launch
