// Where the output of one process goes: straight into its log file, or through the launcher, which
// writes the log and shows it too. In that case it is a pipe, or a terminal of its own where the
// launcher has one: then the program behaves as if it were run alone, line by line.
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
  // Writes what is there into the log and to `show`.
  void forward(const std::function<void(std::string_view)>& show);
  void finish();

 private:
  Fd log_, reader_, writer_;
};

// Removes the logs of an earlier run in this folder, but not those named, and none that a process
// of a running job writes to.
void remove_old_logs(const std::string& folder, const std::vector<std::string>& keep);

// The end of a text file, indented, for a report.
std::string last_lines(const std::string& path);

}  // namespace fleetx::launch
