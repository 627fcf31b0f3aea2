// The console of fleetrun: output of processes (stdout), one line per event with its time (stderr),
// and a progress line at the bottom of a terminal.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fleetx/base/log.h"

namespace fleetx::launch {

class Console {
 public:
  struct Options {
    bool prefixes =
        false;  // output of several processes: each line begins with the name of its process
    bool progress = false;  // stderr is a terminal
  };
  explicit Console(const Options& options) : options_(options) {}
  ~Console() { hide_progress(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void output(const std::string& who, std::string_view bytes);
  // The output of `who` has ended: completes an unfinished line.
  void end_output(const std::string& who);
  template <class... Parts>
  void event(log::Level level, const Parts&... parts) {
    prepare_line();
    log::write(level, "fleetrun", str(parts...));
  }
  void progress(const std::string& text);

 private:
  void prepare_line();
  void hide_progress();
  void write_out(std::string_view bytes);

  Options options_;
  std::map<std::string, std::string> unfinished_;  // last line of each process, with prefixes
  bool line_open_ = false, progress_shown_ = false, stdout_gone_ = false;
};

}  // namespace fleetx::launch
