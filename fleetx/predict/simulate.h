// A discrete-event simulation of one step of a job. Each rank has a lane that computes, in the
// order of its program, and a lane for each group that it calls; calls of a group follow each
// other. Calls that are under way at once share the links that they need. Nothing random, no clock:
// the same input gives the same result, bit by bit.
//
//   const Timeline t = simulate({{.name = "rank 0", .tasks = {...}}}, links);
//   t.seconds, t.ranks[0].compute_s, t.ranks[0].exposed_s, t.ranks[0].bubble_s
#pragma once

#include <string>
#include <vector>

namespace fleetx::predict {

inline constexpr int kNoCall = -1;

struct Task {
  enum class Kind {
    kCompute,  // takes `seconds` of the lane that computes
    kCall,     // hands a call to the lane of its group; the program goes on
    kWait,     // for the call of the same number
  };

  Kind kind = Kind::kCompute;
  std::string name;
  double seconds = 0;  // kCompute: alone
  // kCall: what it takes when nobody else uses the links.
  std::string group = {};
  double latency_s = 0;              // before anything flows
  double host_s = 0, network_s = 0;  // of the links' time
  double overlap = 1;                // speed of computation of its rank while it is under way
  int call = kNoCall;                // number within the rank
  // Of a message: calls of two ranks on one channel are the two ends of one transfer, the first
  // with the first. "": a call whose other ranks do the same as this one.
  std::string channel = {};
};

// A rank, or many that all do the same at the same time.
struct SimulatedRank {
  std::string name;
  std::vector<Task> tasks;
  int host = 0;  // ranks of one host share its links
};

struct Span {
  size_t rank = 0;
  std::string lane;  // "compute", or a group
  std::string name;
  double start = 0, end = 0;
};

struct RankTime {
  double compute_s = 0;
  double exposed_s = 0;  // waited for calls that were under way
  double bubble_s = 0;   // waited for other ranks to come so far
};

struct Timeline {
  double seconds = 0;
  std::vector<RankTime> ranks;
  std::vector<Span> spans;

  // In the Chrome/Perfetto JSON format: a process for each rank, a row for each lane.
  void save(const std::string& path) const;
};

// Ranks that wait for each other in a circle are kInvalidArgument that names who waits for what.
Timeline simulate(const std::vector<SimulatedRank>& ranks);

}  // namespace fleetx::predict
