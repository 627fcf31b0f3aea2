// One rank of a collective between hosts, timed the same way for every implementation. The hosts
// are network namespaces of one machine, so the ranks share its files and its clock: they meet at a
// file that all of them have mapped, which costs the link nothing, and note when each call began
// and ended. bench/net.py starts the ranks and joins their notes.
//
// command line of such a program: FOLDER COLLECTIVE:BYTES:CALLS...
// It meets at FOLDER/meeting and writes FOLDER/rank-RANK, a line of JSON for every task.
// peers/torch_collectives.py does the same.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/allreduce.h"

namespace fleetx::bench {

inline constexpr int kWarmups = 2;

// Ranks count how often they came, each in a cache line of its own. Whoever waits calls `progress`:
// a library without threads of its own may have to send the rest of what it has buffered.
class Meeting {
 public:
  Meeting(const std::string& path, int rank, int ranks, std::function<void()> progress)
      : rank_(rank), ranks_(ranks), progress_(std::move(progress)) {
    const int fd = open(path.c_str(), O_RDWR);
    const size_t bytes = static_cast<size_t>(ranks) * sizeof(Seat);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    close(fd);
    seats_ = static_cast<Seat*>(memory);
  }

  // First asleep, so that those who still compute have the cores, then awake, so that all begin at
  // the same moment.
  void wait() {
    come([] { usleep(100); });
    come([] { sched_yield(); });
  }

 private:
  struct alignas(64) Seat {
    std::atomic<int64_t> came;
  };

  void come(void (*pause)()) {
    const int64_t mine = ++seats_[rank_].came;
    for (int r = 0; r < ranks_; ++r)
      while (seats_[r].came < mine) {
        progress_();
        pause();
      }
  }

  Seat* seats_ = nullptr;
  int rank_, ranks_;
  std::function<void()> progress_;
};

// User and system time of all threads of this process, in seconds.
inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What an implementation does on one rank. `bytes` is the longer of a collective's two buffers.
struct Rank {
  int rank = 0, ranks = 1;
  std::function<float*(size_t bytes)> take;  // memory that lives as long as the process
  std::function<void(const std::string& collective, float* in, float* out, size_t bytes)> call;
  std::function<void()> progress = [] {};
};

// Whether the part of the result that every collective has is right, for inputs of 1 on each rank.
inline bool right(const std::string& collective, const float* in, const float* out, size_t bytes,
                  int ranks) {
  const bool in_place = collective == "all_reduce" || collective == "broadcast";
  const bool sums = collective == "all_reduce" || collective == "reduce_scatter";
  const float expected = sums ? static_cast<float>(ranks) : 1.0f;
  for (size_t i = 0; i < bytes / sizeof(float) / static_cast<size_t>(ranks); i += 97)
    if ((in_place ? in : out)[i] != expected) return false;
  return true;
}

inline void play(const Rank& r, const std::string& folder, const std::vector<std::string>& tasks) {
  Meeting meeting(folder + "/meeting", r.rank, r.ranks, r.progress);
  FILE* notes = std::fopen((folder + "/rank-" + std::to_string(r.rank)).c_str(), "w");
  if (notes == nullptr) throw std::runtime_error("cannot write in " + folder);
  for (const std::string& task : tasks) {
    const size_t first = task.find(':'), last = task.rfind(':');
    const std::string collective = task.substr(0, first);
    const size_t bytes = std::stoul(task.substr(first + 1));
    const int calls = std::stoi(task.substr(last + 1));
    float *const in = r.take(bytes), *const out = r.take(bytes);
    std::string begins, ends;
    double cpu = 0;
    for (int i = -kWarmups; i < calls; ++i) {
      write_all(in, bytes);
      std::fill(out, out + bytes / sizeof(float), 0.0f);
      if (collective == "broadcast" && r.rank > 0) std::fill(in, in + bytes / sizeof(float), 0.0f);
      meeting.wait();
      const double cpu_before = cpu_seconds(), begin = microseconds_now();
      r.call(collective, in, out, bytes);
      const double end = microseconds_now();
      if (!right(collective, in, out, bytes, r.ranks))
        throw std::runtime_error(task + ": wrong result");
      if (i < 0) continue;
      cpu += cpu_seconds() - cpu_before;
      begins += (begins.empty() ? "" : ", ") + std::to_string(begin);
      ends += (ends.empty() ? "" : ", ") + std::to_string(end);
    }
    std::fprintf(notes,
                 "{\"collective\": \"%s\", \"bytes\": %zu, \"begin_us\": [%s], \"end_us\": [%s], "
                 "\"cpu_s\": %.6f, \"process_cpu_s\": %.6f}\n",
                 collective.c_str(), bytes, begins.c_str(), ends.c_str(), cpu, cpu_seconds());
  }
  std::fclose(notes);
  meeting.wait();  // nobody ends while others measure
}

}  // namespace fleetx::bench
