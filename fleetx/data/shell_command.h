// A command of /bin/sh that runs beside this process: it reads a file and we read what it prints.
// Its errors go to our stderr. It is in a process group of its own, which is killed with the
// object.
#pragma once

#include <sys/types.h>

#include <string>

#include "fleetx/base/fd.h"

namespace fleetx::data {

class ShellCommand {
 public:
  ShellCommand(std::string text, const Fd& input);
  ~ShellCommand();
  ShellCommand(const ShellCommand&) = delete;
  ShellCommand& operator=(const ShellCommand&) = delete;

  const std::string& text() const { return text_; }
  int output() const { return output_.get(); }  // to be read
  bool ended();                                 // without waiting
  // After it has ended.
  bool succeeded() const;
  std::string status() const;  // "3", "signal 9"

 private:
  std::string text_;
  Fd output_;
  pid_t pid_ = -1;  // -1: ended
  int status_ = 0;
};

}  // namespace fleetx::data
