#include "fleetx/data/hadoop.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "fleetx/base/error.h"
#include "fleetx/base/fd.h"
#include "fleetx/base/job_env.h"
#include "fleetx/data/child_process.h"

namespace fleetx::data {
namespace {

// What one command prints, read while it runs.
class CommandPipe {
 public:
  explicit CommandPipe(const std::string& command) {
    int ends[2];
    check_arg(pipe2(ends, O_CLOEXEC) == 0, command, " gets no pipe: ", std::strerror(errno));
    read_ = Fd(ends[0]);
    written_ = Fd(ends[1]);
    fcntl(read_.get(), F_SETFL, O_NONBLOCK);
  }

  int reader() const { return read_.get(); }  // -1 after its end
  int writer() const { return written_.get(); }
  void close_writer() { written_.reset(); }
  const std::string& text() const { return text_; }

  // What there is now.
  void take() {
    char buffer[1 << 16];
    while (read_) {
      const ssize_t got = ::read(read_.get(), buffer, sizeof buffer);
      if (got > 0) text_.append(buffer, static_cast<size_t>(got));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) read_.reset();
    }
  }
  void keep_last(size_t bytes) {
    if (text_.size() > bytes) text_.erase(0, text_.size() - bytes);
  }

 private:
  Fd read_, written_;
  std::string text_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  return lines;
}

// The last one that is not part of a Java stack.
std::string last_error(const std::string& errors) {
  constexpr size_t kMost = 500;
  const std::vector<std::string> lines = lines_of(errors);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if ((*line)[0] != '\t' && (*line)[0] != ' ') return line->substr(0, kMost);
  return lines.empty() ? "it printed no error" : lines.back().substr(0, kMost);
}

bool says_missing(const std::string& line) {
  return line.find("No such file or directory") != std::string::npos ||
         line.find("does not exist") != std::string::npos;
}

// `-test` answers "no" and "I cannot say" with the same code: its errors tell. It also logs there.
bool could_not_ask(const std::string& errors) {
  for (const std::string& line : lines_of(errors)) {
    const bool answer = line.starts_with("test:") || line.starts_with("-test:");
    if (answer && !says_missing(line)) return true;
    for (const char* word : {"Error", "ERROR", "FATAL", "Exception"})
      if (!answer && line.find(word) != std::string::npos) return true;
  }
  return false;
}

// Hadoop takes names of files for patterns ...
std::string quoted(const std::string& path) {
  std::string result;
  for (const char c : path) {
    if (std::string_view("*?[]{}\\").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// ... and the local one for an address.
std::string as_address(const std::string& path) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string result;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/._-~+=,@").find(c) != std::string_view::npos)
      result += c;
    else
      (result += '%') += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return result;
}

std::string in_words(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words) result += " " + word;
  return result;
}

std::string scalar(const YAML::Node& root, const char* key, const std::string& source) {
  const YAML::Node node = root[key];
  if (!node || node.IsNull()) return "";
  check_file(node.IsScalar(), source, ": `", key, "` is not one value");
  return node.as<std::string>();
}

}  // namespace

HadoopOptions parse_hadoop(const std::string& yaml, const std::string& source) {
  try {
    const YAML::Node root = YAML::Load(yaml);
    check_file(root.IsMap(), source, ": expected `hadoop_home: folder` and `data_path: folder`");
    HadoopOptions o{.source = source,
                    .home = scalar(root, "hadoop_home", source),
                    .path = scalar(root, "data_path", source),
                    .name_node = scalar(root, "fs.default.name", source),
                    .ugi = scalar(root, "hadoop.job.ugi", source),
                    .java_home = scalar(root, "java_home", source)};
    if (o.home.empty() && o.path.empty() && root["bos_path"])
      fail(
          Error::Kind::kInvalidArgument,
          str(source, ": its `bos_path` names files on a server or in a folder, not in HDFS; call ",
              "download_from_bos"));
    check_file(!o.home.empty(), source,
               ": has no `hadoop_home`; add the folder of the Hadoop that ",
               "is installed here, the one with bin/hadoop");
    check_file(!o.path.empty(), source,
               ": has no `data_path`; add the folder in HDFS that has filelist.txt");
    return o;
  } catch (const YAML::Exception& e) {
    fail(Error::Kind::kCorrupt, str(source, ": ", e.what()));
  }
}

Hadoop::Hadoop(HadoopOptions options)
    : options_(std::move(options)), program_(options_.home + "/bin/hadoop") {
  check_arg(std::filesystem::is_regular_file(program_) && access(program_.c_str(), X_OK) == 0,
            options_.source, ": hadoop_home: there is no program ", program_,
            "; give the folder of a Hadoop that is installed on this machine");
}

struct Hadoop::Result {
  std::string command = {};
  int code = 0;
  std::string status = {};
  std::string output = {};
  std::string errors = {};

  [[noreturn]] void refuse() const {
    const std::string last = last_error(errors);
    fail(says_missing(last) ? Error::Kind::kInvalidArgument : Error::Kind::kComm,
         str("`", command, "` ended with ", status, ": ", last));
  }
};

std::string Hadoop::path_of(const std::string& name) const {
  return options_.path + (options_.path.ends_with('/') ? "" : "/") + name;
}

std::string Hadoop::where(const std::string& name) const {
  const std::string path = path_of(name);
  if (!path.starts_with('/')) return path;
  return options_.name_node.substr(0, options_.name_node.find_last_not_of('/') + 1) + path;
}

Hadoop::Result Hadoop::run(const std::vector<std::string>& words, uint64_t limit,
                           std::chrono::milliseconds timeout) const {
  constexpr int kStep = 10;  // milliseconds
  constexpr size_t kErrors = size_t{1} << 16;
  // Without the user's password.
  Result result{.command = str(program_, " fs", in_words(words))};
  std::vector<std::string> argv{program_, "fs"};
  const auto define = [&](const char* key, const std::string& value) {
    if (!value.empty()) argv.insert(argv.end(), {"-D", str(key, "=", value)});
  };
  define("fs.default.name", options_.name_node);
  define("hadoop.job.ugi", options_.ugi);
  argv.insert(argv.end(), words.begin(), words.end());
  auto environment = whole_environment();
  if (!options_.java_home.empty()) environment["JAVA_HOME"] = options_.java_home;

  CommandPipe output(result.command), errors(result.command);
  ChildProcess child({.argv = argv,
                      .name = str("`", result.command, "`"),
                      .output = output.writer(),
                      .errors = errors.writer(),
                      .environment = std::move(environment),
                      .ends_with_us = true});
  output.close_writer();
  errors.close_writer();
  const auto begin = std::chrono::steady_clock::now();
  for (bool ended = false; !ended;) {
    if (options_.poll) options_.poll();
    if (options_.stop != nullptr && *options_.stop)
      fail(Error::Kind::kComm, str("`", result.command, "` was stopped"));
    if (std::chrono::steady_clock::now() - begin > timeout)
      fail(Error::Kind::kTimeout,
           str("`", result.command, "` has not ended after ",
               std::chrono::duration<double>(timeout).count(), " s and was stopped"));
    pollfd waiting[] = {{output.reader(), POLLIN, 0}, {errors.reader(), POLLIN, 0}};
    ::poll(waiting, 2, kStep);
    ended = child.ended();  // before the last reading
    output.take();
    errors.take();
    errors.keep_last(kErrors);
    check_file(output.text().size() <= limit, "`", result.command, "` printed more than ", limit,
               " bytes");
  }
  result.code = child.code();
  result.status = child.code() < 0 ? child.status() : str("code ", child.code());
  result.output = output.text();
  result.errors = errors.text();
  return result;
}

std::optional<std::string> Hadoop::find(const std::string& name, uint64_t limit) const {
  constexpr uint64_t kNothing = uint64_t{1} << 16;  // but perhaps some words
  const std::string path = quoted(path_of(name));
  const Result there = run({"-test", "-e", path}, kNothing, options_.ask_timeout);
  if (there.code == 1 && !could_not_ask(there.errors)) return std::nullopt;
  if (there.code != 0) there.refuse();
  Result text = run({"-cat", path}, limit, options_.ask_timeout);
  if (text.code != 0) text.refuse();
  return std::move(text.output);
}

void Hadoop::fetch(const std::string& name, const std::string& path) const {
  constexpr uint64_t kMostWords = uint64_t{1} << 20;
  // Hadoop writes here first, and it does not replace a file.
  const std::string copying = path + "._COPYING_";
  std::error_code ignored;
  const auto clear = [&] {
    std::filesystem::remove(copying, ignored);
    std::filesystem::remove(path, ignored);
  };
  clear();
  try {
    const Result result =
        run({"-get", quoted(path_of(name)), as_address(path)}, kMostWords, options_.fetch_timeout);
    if (result.code != 0) result.refuse();
    check_file(std::filesystem::is_regular_file(path), "`", result.command, "` wrote no file ",
               path);
  } catch (...) {
    clear();
    throw;
  }
}

}  // namespace fleetx::data
