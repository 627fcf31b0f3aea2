#include "fleetx/data/shell_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fleetx/base/error.h"

namespace fleetx::data {

ShellCommand::ShellCommand(std::string text, const Fd& input) : text_(std::move(text)) {
  const std::string name = str("pipe_command '", text_, "'");
  int ends[2];
  check_arg(pipe2(ends, O_CLOEXEC) == 0, name, " gets no pipe: ", std::strerror(errno));
  output_ = Fd(ends[0]);
  const Fd written(ends[1]);
  child_.emplace(ChildOptions{.argv = {"/bin/sh", "-c", text_},
                              .name = name,
                              .input = input.get(),
                              .output = written.get()});
}

}  // namespace fleetx::data
