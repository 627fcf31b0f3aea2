#include "fleetx/launch/console.h"

#include <unistd.h>

#include <cerrno>

namespace fleetx::launch {
namespace {

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

void Console::write_out(std::string_view bytes) {
  // A closed stdout (`fleetrun ... | head`) must not stop the job.
  if (!stdout_gone_) stdout_gone_ = !write_all(STDOUT_FILENO, bytes);
  line_open_ = bytes.back() != '\n';
}

void Console::output(const std::string& who, std::string_view bytes) {
  if (bytes.empty()) return;
  hide_progress();
  if (!options_.prefixes) return write_out(bytes);
  std::string& line = unfinished_[who];
  std::string ready;
  for (const char c : bytes) {
    line += c;
    if (c != '\n') continue;
    ready += str("[", who, "] ", line);
    line.clear();
  }
  if (!ready.empty()) write_out(ready);
}

void Console::end_output(const std::string& who) {
  if (!unfinished_[who].empty()) output(who, "\n");
}

void Console::prepare_line() {
  hide_progress();
  if (line_open_ && options_.progress) write_out("\n");
}

void Console::progress(const std::string& text) {
  if (!options_.progress || line_open_) return;
  progress_shown_ = write_all(STDERR_FILENO, str("\r\x1b[K", text));
}

void Console::hide_progress() {
  if (progress_shown_) write_all(STDERR_FILENO, "\r\x1b[K");
  progress_shown_ = false;
}

}  // namespace fleetx::launch
