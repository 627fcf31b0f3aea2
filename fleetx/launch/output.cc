#include "fleetx/launch/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <vector>

#include "fleetx/base/error.h"

namespace fleetx::launch {
namespace {

// Returns false if no pseudo-terminal is available; the caller then uses a pipe.
bool open_terminal(Fd& reader, Fd& writer) {
  Fd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[64];
  if (!master || grantpt(master.get()) != 0 || unlockpt(master.get()) != 0 ||
      ptsname_r(master.get(), name, sizeof name) != 0)
    return false;
  Fd slave(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!slave || tcgetattr(slave.get(), &settings) != 0) return false;
  cfmakeraw(&settings);  // no translation of the bytes
  tcsetattr(slave.get(), TCSANOW, &settings);
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) ioctl(slave.get(), TIOCSWINSZ, &size);
  reader = std::move(master);
  writer = std::move(slave);
  return true;
}

void open_pipe(Fd& reader, Fd& writer) {
  int ends[2];
  FLEETX_CHECK(pipe2(ends, O_CLOEXEC) == 0, "pipe: ", std::strerror(errno));
  reader = Fd(ends[0]);
  writer = Fd(ends[1]);
}

}  // namespace

Output::Output(const std::string& log_path, bool append, Kind kind)
    : log_(open(log_path.c_str(),
                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0644)) {
  check_arg(static_cast<bool>(log_), "cannot write ", log_path, ": ", std::strerror(errno),
            "; choose another folder with --log_dir");
  // The lock is shared with the child and held as long as any process can write: see
  // remove_old_logs.
  flock(log_.get(), LOCK_SH | LOCK_NB);
  if (kind == Kind::kFile) return;
  if (kind != Kind::kTerminal || !open_terminal(reader_, writer_)) open_pipe(reader_, writer_);
  fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
}

void Output::started() {
  writer_.reset();
  if (!reader_) log_.reset();
}

void Output::forward(const std::function<void(std::string_view)>& show) {
  char buffer[65536];
  while (reader_) {
    const ssize_t got = read(reader_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return reader_.reset();  // all writers have closed (EIO on a terminal)
    const std::string_view bytes(buffer, static_cast<size_t>(got));
    if (write(log_.get(), bytes.data(), bytes.size()) < 0) log_.reset();
    show(bytes);
  }
}

void Output::finish() {
  reader_.reset();
  log_.reset();
}

void remove_old_logs(const std::string& folder, const std::vector<std::string>& keep) {
  static const std::regex kName("(worker|server|heter)log\\.[0-9]+");
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (!std::regex_match(name, kName) || std::ranges::count(keep, name) > 0) continue;
    const Fd log(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (log && flock(log.get(), LOCK_EX | LOCK_NB) == 0)
      std::filesystem::remove(entry.path(), ignored);
  }
}

std::string last_lines(const std::string& path) {
  constexpr std::streamoff kMaxBytes = 3000;
  constexpr size_t kMaxLines = 12;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  file.seekg(std::max<std::streamoff>(0, size - kMaxBytes));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) return "    | (it is empty)";
  std::ostringstream text;
  for (size_t i = lines.size() - std::min(lines.size(), kMaxLines); i < lines.size(); ++i)
    text << "    | " << lines[i] << (i + 1 < lines.size() ? "\n" : "");
  return text.str();
}

}  // namespace fleetx::launch
