// A command of /bin/sh that runs beside this process: it reads a file and we read what it prints.
// Its errors go to our stderr. It is in a process group of its own, which is killed with the
// object.
#pragma once

#include <optional>
#include <string>

#include "fleetx/base/fd.h"
#include "fleetx/data/child_process.h"

namespace fleetx::data {

class ShellCommand {
 public:
  ShellCommand(std::string text, const Fd& input);

  const std::string& text() const { return text_; }
  int output() const { return output_.get(); }  // to be read
  bool ended() { return child_->ended(); }      // without waiting
  // After it has ended.
  bool succeeded() const { return child_->succeeded(); }
  std::string status() const { return child_->status(); }  // "3", "signal 9"

 private:
  std::string text_;
  Fd output_;
  std::optional<ChildProcess> child_;
};

}  // namespace fleetx::data
