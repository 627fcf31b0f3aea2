// Files in HDFS, by the command line of a Hadoop that is installed: every call runs
//
//   hadoop_home/bin/hadoop fs -D fs.default.name=... -D hadoop.job.ugi=... -test|-cat|-get ...
//
// without a shell, and ends it where the call is cancelled. Thread-safe.
//
// Errors: kInvalidArgument for a missing file, kComm if the command fails (with its code and the
// last line of its errors), kTimeout if it does not end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fleetx::data {

struct HadoopOptions {
  std::string source = {};     // the file that says all this, for errors
  std::string home = {};       // hadoop_home: folder with bin/hadoop
  std::string path = {};       // data_path: folder in HDFS
  std::string name_node = {};  // fs.default.name; empty: as Hadoop's own configuration says
  std::string ugi = {};        // hadoop.job.ugi: user,password; the same
  std::string java_home = {};  // empty: as the environment says
  std::chrono::milliseconds ask_timeout{300'000};       // of -test and -cat
  std::chrono::milliseconds fetch_timeout{86'400'000};  // of -get
  const std::atomic<bool>* stop = nullptr;              // cancels when it becomes true
  std::function<void()> poll = {};  // called from time to time; may throw to cancel
};

// The settings in a yaml that came from `source`.
HadoopOptions parse_hadoop(const std::string& yaml, const std::string& source);

class Hadoop {
 public:
  explicit Hadoop(HadoopOptions options);

  std::string where(const std::string& name) const;  // for errors
  // The whole text, at most `limit` bytes. nullopt if there is no such file.
  std::optional<std::string> find(const std::string& name, uint64_t limit) const;
  // To `path`, in the place of what is there.
  void fetch(const std::string& name, const std::string& path) const;

 private:
  struct Result;
  std::string path_of(const std::string& name) const;
  Result run(const std::vector<std::string>& words, uint64_t limit,
             std::chrono::milliseconds timeout) const;

  const HadoopOptions options_;
  const std::string program_;
};

}  // namespace fleetx::data
