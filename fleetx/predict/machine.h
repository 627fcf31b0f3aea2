// What a prediction must know of the machines of a job: how fast a host computes, how fast its
// ranks reach each other, how often it fails. A file of text (YAML), written by `fleetx calibrate`
// or by hand:
//
//   name: two cores
//   cores: 2                  # of a host
//   memory_GiB: 8             # of a host
//   compute:
//     f32_GFLOPS: 90          # that are reached, all cores of a host together
//     half_GFLOPS: 90         # of products in bf16 and f16
//     memory_GBps: 12
//     op_us: 3                # that an op takes besides its work
//   links:
//     host: {GBps: 4, latency_us: 10}
//     network: {GBps: 0.117, latency_us: 60}
//
// docs/plan.md lists all fields. A plain value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleetx/base/dtype.h"

namespace fleetx::predict {

// Between ranks of a host, or between hosts.
struct Link {
  // Messages of this many bytes travel at this rate; between two sizes it is interpolated.
  struct Rate {
    double bytes = 0;
    double bytes_per_second = 0;
    bool operator==(const Rate&) const = default;
  };

  double bytes_per_second = 0;
  double latency_s = 0;  // of one message
  double tensor_s = 0;   // that a program loses for each tensor of a call: it is copied, announced
  // Between hosts: calls go round all ranks in one ring, as those of NCCL do, instead of first
  // inside each host and then from host to host.
  bool ring = false;
  bool shared = true;         // by all ranks of a host; false: each has one of its own
  std::vector<Rate> rates{};  // by size, ascending; none: always bytes_per_second
  double overlap = 0;         // as that of the machine, for calls over this link; 0: the machine's

  double rate(double bytes) const;
  bool operator==(const Link&) const = default;
};

inline constexpr int kAllCores = 0;

// A measured op: how long this much work took.
struct OpSample {
  std::string op;
  DType dtype = DType::kF32;
  double flops = 0, bytes = 0, seconds = 0;
  std::string kernel = {};  // the implementation; "": any
  // That worked on it, while the host's other cores did the same for other ranks.
  int cores = kAllCores;
  bool operator==(const OpSample&) const = default;
};

// Of one host.
struct Failures {
  double mtbf_s = 0;        // mean time between failures; 0: never
  double checkpoint_s = 0;  // that the job stands still for each checkpoint
  double restart_s = 0;     // from a failure until the job trains again
  bool operator==(const Failures&) const = default;
};

struct Machine {
  std::string name = "machine";
  int cores = 1;
  int ranks = 0;           // of a job on each host; 0: as the job says
  int cores_per_rank = 0;  // 0: all cores of the host are divided
  double memory_bytes = 0;
  double f32_flops = 0, half_flops = 0, memory_rate = 0;
  double op_s = 0;
  // Speed of computation while its rank communicates, of its speed alone, where a rank has one
  // core; with more it loses as much of one of them.
  double overlap = 1;
  Link host, network;
  std::vector<OpSample> ops{};
  Failures failures{};

  // What is missing or cannot be is kCorrupt: "source:line: ...".
  static Machine parse(std::string_view text, const std::string& source);
  static Machine load(const std::string& path);
  std::string to_text() const;
  // A rough guess by the number of cores and their instruction set, for where nothing is measured.
  static Machine guess();

  bool operator==(const Machine&) const = default;
};

}  // namespace fleetx::predict
