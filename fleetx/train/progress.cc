#include "fleetx/train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace fleetx::train {
namespace {

constexpr int kBarWidth = 20;

template <class... Args>
std::string print(const char* format, Args... args) {
  char text[128];
  const int n = std::snprintf(text, sizeof text, format, args...);
  return {text, static_cast<size_t>(std::clamp(n, 0, static_cast<int>(sizeof text) - 1))};
}

std::string with_commas(double value) {
  std::string digits = print("%.0f", value);
  for (ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

size_t columns(std::FILE* out) {
  winsize size{};
  const bool known = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

std::string to_clock(double seconds) {
  const auto s = static_cast<int64_t>(std::clamp(seconds, 0.0, 1e9) + 0.5);
  const auto minutes = s / 60 % 60, hours = s / 3600;
  if (hours > 0)
    return print("%lld:%02lld:%02lld", static_cast<long long>(hours),
                 static_cast<long long>(minutes), static_cast<long long>(s % 60));
  return print("%lld:%02lld", static_cast<long long>(minutes), static_cast<long long>(s % 60));
}

std::string to_line(const Status& s, Bar bar) {
  std::string line =
      print("epoch %lld/%lld ", static_cast<long long>(s.epoch), static_cast<long long>(s.epochs));
  if (bar == Bar::kYes) {
    const auto done = static_cast<int>(
        s.steps > 0 ? std::clamp<int64_t>(s.step * kBarWidth / s.steps, 0, kBarWidth) : 0);
    std::string cells(kBarWidth, ' ');
    std::fill_n(cells.begin(), done, '=');
    if (done < kBarWidth) cells[static_cast<size_t>(done)] = '>';
    line.append("[").append(cells).append("] ");
  }
  const std::string steps = std::to_string(s.steps);
  line += print(bar == Bar::kYes ? "%*lld/" : " step %*lld/", static_cast<int>(steps.size()),
                static_cast<long long>(s.step));
  line += steps;
  line += print("  loss %.4f", s.loss);
  if (!std::isnan(s.accuracy)) line += print("  acc %5.2f %%", 100 * s.accuracy);
  if (s.rate > 0) {
    line.append("  ").append(with_commas(s.rate)).append(" ").append(s.items).append("/s");
    line.append("  ETA ").append(to_clock(s.seconds_left));
  }
  return line;
}

Progress::Progress(std::FILE* out) : out_(out), live_(out != nullptr && isatty(fileno(out)) == 1) {}

Progress::~Progress() { clear(); }

void Progress::show(const Status& status) {
  if (!live_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  // A line longer than the terminal would wrap and could not be redrawn.
  const std::string line = to_line(status, Bar::kYes).substr(0, columns(out_) - 1);
  std::fprintf(out_, "\r\033[K%s", line.c_str());
  std::fflush(out_);
  drawn_ = true;
}

void Progress::say(const std::string& text) {
  if (out_ == nullptr) return;
  clear();
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", out_);
  drawn_ = false;
}

}  // namespace fleetx::train
