// Servers and workers as processes of their own (program/actor.cc), which can be killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fleetx::ps {

class Process {
 public:
  // Its output, errors included, goes to this file; its input ends with finish().
  Process(const std::vector<std::string>& args, std::string output);
  ~Process();  // kill -9
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  void finish();
  bool ended();  // and reaped
  int wait();    // exit code, 128 + signal; 98 after 20 s, when it is killed
  std::string output() const;
  bool says(const std::string& text) const;  // false after 20 s

 private:
  const std::string output_;
  pid_t pid_ = -1;
  int input_ = -1, code_ = -1;
};

// Each call has a loopback address of its own: nobody else gets the port of a server that was
// killed.
std::vector<std::string> free_endpoints(int count);
bool can_bind(const std::string& endpoint);
double now();

}  // namespace fleetx::ps
