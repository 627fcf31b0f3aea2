#include "fleetx/base/cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::cgroup {
namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
enum class Version { kOne, kTwo };
enum class Kind { kCpu, kMemory };

std::string_view controller_of(Kind kind) { return kind == Kind::kCpu ? "cpu" : "memory"; }

struct Mount {
  Version version;
  std::string group;   // that is mounted, as /proc/self/cgroup names groups
  std::string folder;  // where
};

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

bool has_item(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

// The kernel writes blanks and backslashes of a path as three octal digits.
std::string unescaped(const std::string& text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      out +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Lines such as "33 31 0:30 /docker/7f /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct".
std::vector<Mount> mounts(const fs::path& root, Kind kind) {
  std::vector<Mount> list;
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> fields = words(line);
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const std::string &group = fields[3], &folder = fields[4], &type = dash[1], &options = dash[3];
    if (type == "cgroup2") list.push_back({Version::kTwo, unescaped(group), unescaped(folder)});
    if (type == "cgroup" && has_item(options, controller_of(kind)))
      list.push_back({Version::kOne, unescaped(group), unescaped(folder)});
  }
  return list;
}

// Lines such as "0::/system.slice/a.service" (version 2) and "4:cpu,cpuacct:/docker/7f".
std::optional<std::string> group_of(const fs::path& process, Version version, Kind kind) {
  std::ifstream in(process / "cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == Version::kTwo ? controllers.empty() && line.substr(0, first) == "0"
                                 : has_item(controllers, controller_of(kind)))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

// The numbers at the beginning of a file; "max" is no number.
std::vector<double> numbers(const fs::path& file) {
  std::vector<double> list;
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size()) break;
    list.push_back(number);
  }
  return list;
}

double cores_of(const fs::path& folder, Version version) {
  std::vector<double> values;
  if (version == Version::kTwo) {
    values = numbers(folder / "cpu.max");
    if (values.size() == 1) values.push_back(100'000);  // the period, where it is left out
  } else {
    values = numbers(folder / "cpu.cfs_quota_us");
    const std::vector<double> period = numbers(folder / "cpu.cfs_period_us");
    values.insert(values.end(), period.begin(), period.end());
  }
  if (values.size() != 2 || values[0] <= 0 || values[1] <= 0) return kUnlimited;  // -1: no limit
  return values[0] / values[1];
}

double bytes_of(const fs::path& folder, Version version) {
  constexpr double kMost = 1e18;  // version 1 writes a number of this size for "no limit"
  const char* file = version == Version::kTwo ? "memory.max" : "memory.limit_in_bytes";
  const std::vector<double> values = numbers(folder / file);
  return values.empty() || values[0] >= kMost ? kUnlimited : values[0];
}

// The part of a group's path below what is mounted. A container may see its own group mounted as
// the root, and a process that was moved has a path outside of it ("/../b"): then what is mounted
// is all that can be seen.
fs::path below(const std::string& group, const std::string& mounted) {
  const fs::path relative = fs::path(group).lexically_relative(mounted);
  const bool outside = relative.empty() || *relative.begin() == ".." || relative == ".";
  return outside ? fs::path() : relative;
}

// The groups of this process that can be seen, from the outermost on: (folder, below the mount).
template <class Fn>
void for_each_group(const fs::path& root, Kind kind, const Fn& fn) {
  for (const Mount& mount : mounts(root, kind)) {
    const auto group = group_of(root / "proc/self", mount.version, kind);
    if (!group) continue;
    const fs::path top = root / fs::path(mount.folder).relative_path();
    fs::path path;
    fn(mount, top, path);
    for (const fs::path& part : below(*group, mount.group)) {
      path /= part;
      fn(mount, top / path, path);
    }
  }
}

bool is_in(const fs::path& inner, const fs::path& outer) {
  return outer.empty() ||
         std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace

double cpu_quota(const fs::path& root) {
  double least = kUnlimited;
  for_each_group(root, Kind::kCpu,
                 [&](const Mount& mount, const fs::path& folder, const fs::path&) {
                   least = std::min(least, cores_of(folder, mount.version));
                 });
  return least == kUnlimited ? 0 : least;
}

double memory_limit(int siblings, const fs::path& root) {
  double least = kUnlimited;
  const fs::path parent = root / "proc" / std::to_string(getppid());
  for_each_group(
      root, Kind::kMemory, [&](const Mount& mount, const fs::path& folder, const fs::path& path) {
        const auto others = group_of(parent, mount.version, Kind::kMemory);
        const bool alone = others && !is_in(below(*others, mount.group), path);
        least = std::min(least, bytes_of(folder, mount.version) / (alone ? 1 : siblings));
      });
  return least == kUnlimited ? 0 : least;
}

}  // namespace fleetx::cgroup
