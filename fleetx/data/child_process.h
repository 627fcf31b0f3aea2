// A program that runs beside this process. It is in a process group of its own, which is killed
// with the object.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace fleetx::data {

struct ChildOptions {
  std::vector<std::string> argv = {};  // the first is a path; no shell reads them
  std::string name = {};               // in errors
  int input = -1;                      // -1: nothing to read
  int output = -1;
  int errors = -1;                                      // -1: they go to our stderr
  std::map<std::string, std::string> environment = {};  // empty: ours
  // It ends with this process, even by SIGKILL. (Else it may notice by the end of its pipes. This
  // takes a fork, which is slow where this process has much memory.)
  bool ends_with_us = false;
};

class ChildProcess {
 public:
  explicit ChildProcess(const ChildOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool ended();  // without waiting
  // After it has ended.
  bool succeeded() const;
  int code() const;            // -1: a signal ended it
  std::string status() const;  // "3", "signal 9"

 private:
  pid_t pid_ = -1;  // -1: ended
  int status_ = 0;
};

}  // namespace fleetx::data
