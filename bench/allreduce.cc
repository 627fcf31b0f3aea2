// All-reduce between ranks of one host: our shared memory backend (vectors in private memory, and
// vectors that live in shared memory) against Gloo over loopback, Open MPI and memcpy.
// usage: bench_allreduce [RANKS...]      (default: 2 4)
// Microseconds as JSON lines on stdout, and a table on stderr.
#include <gloo/allreduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>

#include "bench/allreduce.h"
#include "fleetx/base/error.h"
#include "fleetx/comm/communicator.h"

namespace fleetx::bench {
namespace {

using Times = std::map<size_t, double>;  // bytes to microseconds

// What the ranks share while they are timed.
struct Board {
  std::atomic<int> arrived, generation;
  double begin[8][2048], end[8][2048];  // of a rank's calls
};

void meet(Board& board, int ranks) {
  const int generation = board.generation;
  if (++board.arrived == ranks) {
    board.arrived = 0;
    ++board.generation;
    return;
  }
  for (int i = 0; board.generation == generation; ++i)
    if (i > 1000 || ranks > 2) sched_yield();
}

// One rank of an implementation.
struct Player {
  std::function<float*(size_t bytes)> take;
  std::function<void(float* data, size_t count)> all_reduce;
  std::shared_ptr<void> keep;
};

void check_result(const float* data, size_t bytes, int ranks, const char* name) {
  for (size_t i = 0; i < bytes / sizeof(float); i += 97)
    if (data[i] != static_cast<float>(ranks)) {
      std::cerr << name << ": wrong result\n";
      _exit(1);
    }
}

void play(Player player, Board& board, int rank, int ranks, int pipe, const char* name) {
  for (const size_t bytes : kSizes) {
    float* const data = player.take(bytes);
    const int rounds = rounds_for(bytes);
    for (int round = -2; round < rounds; ++round) {
      write_all(data, bytes);
      meet(board, ranks);
      const double begin = microseconds_now();
      player.all_reduce(data, bytes / sizeof(float));
      const double end = microseconds_now();
      if (round >= 0) board.begin[rank][round] = begin, board.end[rank][round] = end;
      if (std::strcmp(name, "memcpy") != 0) check_result(data, bytes, ranks, name);
    }
    meet(board, ranks);
    if (rank == 0) {
      std::vector<double> times;
      for (int i = 0; i < rounds; ++i) {
        double begin = board.begin[0][i], end = board.end[0][i];
        for (int r = 1; r < ranks; ++r) {
          begin = std::min(begin, board.begin[r][i]);
          end = std::max(end, board.end[r][i]);
        }
        times.push_back(end - begin);
      }
      const double line[] = {static_cast<double>(bytes), median(times)};
      if (write(pipe, line, sizeof line) != sizeof line) _exit(1);
    }
    meet(board, ranks);
  }
}

// A core for each rank, as fleetrun and mpirun do it. Gloo has threads of its own and does better
// without.
void pin(int rank) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<size_t>(rank % sysconf(_SC_NPROCESSORS_ONLN)), &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

// Runs `make(rank)` in processes of their own and collects what rank 0 measured.
Times run(const char* name, int ranks, const std::function<Player(int)>& make) {
  auto* board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int ends[2];
  if (pipe(ends) != 0) return {};
  std::vector<pid_t> pids;
  for (int r = 0; r < ranks; ++r) {
    pids.push_back(fork());
    if (pids.back() != 0) continue;
    try {
      // The store's thread must not be serving while we fork: its locks would stay taken here.
      meet(*board, ranks);
      if (std::strcmp(name, "gloo") != 0) pin(r);
      play(make(r), *board, r, ranks, ends[1], name);
    } catch (const std::exception& e) {
      std::cerr << name << ", rank " << r << ": " << e.what() << '\n';
      _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  while (!pids.empty()) {
    int status = 0;
    std::erase(pids, wait(&status));
    if (status == 0) continue;
    for (const pid_t pid : pids) kill(pid, SIGKILL);  // they would wait for it at the board
  }
  Times times;
  double line[2];
  while (read(ends[0], line, sizeof line) == sizeof line)
    times[static_cast<size_t>(line[0])] = line[1];
  close(ends[0]);
  munmap(board, sizeof(Board));
  return times;
}

float* private_memory(size_t bytes) { return static_cast<float*>(std::aligned_alloc(4096, bytes)); }

Times time_shm(int ranks, bool in_place) {
  using namespace comm;
  StoreServer server({.secret = "bench"});
  return run(in_place ? "shm in place" : "shm", ranks, [&](int rank) {
    const auto store =
        std::make_shared<StoreClient>(StoreOptions{.server = server.endpoint(), .secret = "bench"});
    const std::shared_ptr<Communicator> c =
        make_communicator({.rank = rank, .size = ranks, .store = store, .backend = "shm"});
    const auto kept = std::make_shared<std::vector<std::shared_ptr<void>>>();
    Player player;
    player.take = [=](size_t bytes) {
      if (!in_place) return private_memory(bytes);
      kept->push_back(c->allocate(bytes));
      return static_cast<float*>(kept->back().get());
    };
    player.all_reduce = [=](float* data, size_t count) {
      c->all_reduce(data, static_cast<int64_t>(count), DType::kF32);
    };
    return player;
  });
}

Times time_gloo(int ranks, gloo::AllreduceOptions::Algorithm algorithm) {
  char folder[] = "/tmp/bench_allreduce.XXXXXX";
  if (mkdtemp(folder) == nullptr) return {};
  const Times times = run("gloo", ranks, [&](int rank) {
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
    const auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    gloo::rendezvous::FileStore store(folder);
    context->connectFullMesh(store, device);
    Player player;
    player.take = private_memory;
    player.all_reduce = [=](float* data, size_t count) {
      gloo::AllreduceOptions options(context);
      options.setOutput(data, count);
      options.setReduceFunction([](void* c, const void* a, const void* b, size_t n) {
        for (size_t i = 0; i < n; ++i)
          static_cast<float*>(c)[i] =
              static_cast<const float*>(a)[i] + static_cast<const float*>(b)[i];
      });
      options.setAlgorithm(algorithm);
      gloo::allreduce(options);
    };
    return player;
  });
  std::filesystem::remove_all(folder);
  return times;
}

Times time_memcpy(int ranks) {
  return run("memcpy", ranks, [](int) {
    Player player;
    player.take = private_memory;
    const auto to = std::make_shared<std::vector<float>>(kSizes[std::size(kSizes) - 1] / 4 + 16);
    player.all_reduce = [=](float* data, size_t count) {
      std::memcpy(to->data(), data, count * sizeof(float));
    };
    return player;
  });
}

Times best_of(const Times& a, const Times& b) {
  Times best = a;
  for (const auto& [bytes, time] : b)
    best[bytes] = best.count(bytes) ? std::min(best[bytes], time) : time;
  return best;
}

Times time_mpi(int ranks, const std::string& folder, const std::string& options) {
  const std::string command = "mpirun --allow-run-as-root --oversubscribe --mca pml ob1 " +
                              options + " -n " + std::to_string(ranks) + " " + folder +
                              "/bench_allreduce_mpi 2>/dev/null";
  Times times;
  FILE* out = popen(command.c_str(), "r");
  if (out == nullptr) return times;
  size_t bytes = 0;
  double time = 0;
  while (std::fscanf(out, "%zu %lf", &bytes, &time) == 2) times[bytes] = time;
  pclose(out);
  return times;
}

std::string label(size_t bytes) {
  return bytes >= (1 << 20) ? str(bytes >> 20, " MB") : str(bytes >> 10, " KB");
}

// A line for bench/run, which knows what is asked.
void report(size_t bytes, const std::map<std::string, Times>& all) {
  std::string times;
  for (const auto& [name, of] : all)
    if (of.count(bytes)) times += str(times.empty() ? "" : ", ", "\"", name, "\": ", of.at(bytes));
  std::printf("{\"bytes\": %zu, \"us\": {%s}}\n", bytes, times.c_str());
}

void bench(int ranks, const std::string& folder) {
  using Algorithm = gloo::AllreduceOptions::Algorithm;
  const Times in_place = time_shm(ranks, true), staged = time_shm(ranks, false);
  const Times copies = time_memcpy(ranks);
  if (in_place.size() < std::size(kSizes))
    fail(Error::Kind::kComm, "the shared memory backend failed");
  const Times gloo = best_of(time_gloo(ranks, Algorithm::RING), time_gloo(ranks, Algorithm::BCUBE));
  const Times mpi = best_of(time_mpi(ranks, folder, ""),
                            time_mpi(ranks, folder, "--mca btl_vader_single_copy_mechanism none"));
  std::fprintf(
      stderr,
      "\n%d ranks, us (GB/s)  shm in place           shm            gloo        Open MPI   "
      "memcpy x %d   gloo/ours  MPI/ours  memcpy/ours\n",
      ranks, ranks);
  for (const size_t bytes : kSizes) {
    const auto cell = [&](const Times& times) {
      const auto it = times.find(bytes);
      if (it == times.end()) return std::string("-");
      char text[64];
      std::snprintf(text, sizeof text, "%.1f (%.1f)", it->second,
                    static_cast<double>(bytes) / it->second / 1e3);
      return std::string(text);
    };
    const double ours = in_place.at(bytes);
    const auto ratio = [&](const Times& t) { return t.count(bytes) ? t.at(bytes) / ours : 0; };
    std::fprintf(stderr, "%-10s %23s %15s %15s %15s %14s %10.1f %9.2f %12.2f\n",
                 label(bytes).c_str(), cell(in_place).c_str(), cell(staged).c_str(),
                 cell(gloo).c_str(), cell(mpi).c_str(), cell(copies).c_str(), ratio(gloo),
                 ratio(mpi), ratio(copies));
    report(bytes, {{"ours", in_place}, {"Open MPI", mpi}, {"Gloo", gloo}, {"memcpy", copies}});
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace fleetx::bench

int main(int argc, char** argv) {
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  if (counts.empty()) counts = {2, 4};
  const std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  for (const int ranks : counts) {
    if (ranks < 2 || ranks > 8) {
      std::cerr << "bench_allreduce: 2 to 8 ranks, not " << ranks << '\n';
      return 2;
    }
    try {
      fleetx::bench::bench(ranks, folder);
    } catch (const std::exception& e) {
      std::cerr << "bench_allreduce: " << e.what() << '\n';
      return 1;
    }
  }
}
