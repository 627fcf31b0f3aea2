// The options of fleetrun: one field per flag, unset if the flag was not given.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fleetx::launch {

using Environment = std::map<std::string, std::string>;

enum class Mode { kCollective, kParameterServer };

struct Options {
  using Text = std::optional<std::string>;
  using Number = std::optional<int>;

  Text gpus{};
  Number nproc_per_node{};
  Text ips{}, master{}, nnodes{};
  Number rank{};
  Text servers{}, workers{}, heter_workers{};
  Number server_num{}, worker_num{}, heter_worker_num{}, http_port{};
  Text run_mode{}, log_dir{}, job_id{}, python{};
  Number max_restart{};
  std::optional<double> snapshot_interval{};  // seconds between two snapshots of a server
  Text snapshot_dir{};
  Number replicas{};  // of each server
  Text server_memory{}, server_disk{};
  std::optional<double> grace{};  // seconds between SIGTERM and SIGKILL
  std::string script{};
  std::vector<std::string> args{};
};

inline constexpr double kGraceSeconds = 5;
// How long workers try to reach a server that is started again and loads its snapshot.
inline constexpr int kReconnectSeconds = 120;

// Fills unset options from PADDLE_NNODES, PADDLE_JOB_ID, ... Flags have precedence.
void take_defaults_from(const Environment& environment, Options& options);

// The kind of job that the flags imply; nullopt if none does. Flags of both kinds, or flags that
// contradict --run_mode, are an error.
std::optional<Mode> mode_of(const Options& options);

// Checks that do not depend on the machine: ranges, flags that exclude each other.
void check(const Options& options);

// Name and value of every option, by name, as the configuration block shows them.
std::vector<std::pair<std::string, std::string>> describe(const Options& options);

// The value of a variable that is set and not empty.
std::optional<std::string> find(const Environment& environment, const std::string& name);
// A whole number from `least` to `most`, or kInvalidArgument that begins with `what`.
int whole_number(const std::string& what, const std::string& text, int least, int most);

}  // namespace fleetx::launch
