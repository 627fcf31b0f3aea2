// How fast a worker pulls and pushes rows through a server in another process: ids of batches of
// 4096, several under way, on one host.
// usage: bench_ps_rpc [ROWS [DIM [THREADS]]]     (default: 10000000 16 1; threads of the server)
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <iostream>

#include "bench/ps_rule.h"
#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/ps/client.h"
#include "fleetx/ps/server.h"

namespace {

using namespace fleetx;
using namespace fleetx::ps;

constexpr size_t kRequest = 4096, kUnderWay = 4;
constexpr double kSeconds = 2.0;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using Batch = std::shared_ptr<const IdBatch>;

// Ids per second of start(batch, buffer), which gives a ticket.
template <class Start>
double rate(const std::vector<Batch>& batches, const Start& start) {
  std::deque<Ticket> under_way;
  const double begin = now();
  double end = begin;
  size_t done = 0;
  for (size_t i = 0; end < begin + kSeconds; ++i) {
    under_way.push_back(start(batches[i % batches.size()], i % kUnderWay));
    if (under_way.size() < kUnderWay) continue;
    under_way.front().wait();
    under_way.pop_front();
    done += kRequest;
    end = now();
  }
  for (Ticket& ticket : under_way) ticket.wait();
  return static_cast<double>(done) / (end - begin);
}

// CPU seconds of a process so far.
double cpu_seconds(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void measure(Client& client, pid_t server, uint64_t rows, int64_t dim) {
  std::vector<Batch> batches;
  std::vector<int64_t> ids(kRequest);
  std::vector<std::vector<float>> buffers(
      kUnderWay, std::vector<float>(kRequest * static_cast<size_t>(dim), 0.001f));
  const double begin = now();
  for (uint64_t first = 0; first < rows; first += kRequest) {
    for (size_t i = 0; i < kRequest; ++i) ids[i] = static_cast<int64_t>(mix(7, first + i));
    client.pull_sparse(0, std::make_shared<const IdBatch>(ids, 1), buffers[0].data(), Rows::kUnique)
        .wait();
  }
  std::cout << rows << " rows of " << dim << " made in " << now() - begin << " s\n";
  const Philox random(3, 1);
  for (uint64_t b = 0; b < 1024; ++b) {
    for (size_t i = 0; i < kRequest; ++i)
      ids[i] = static_cast<int64_t>(
          mix(7, (uint64_t{random.bits(2 * (b * kRequest + i))} * rows) >> 32));
    batches.push_back(std::make_shared<const IdBatch>(ids, 1));
  }
  const auto report = [&](const char* what, const auto& start) {
    const double cpu = cpu_seconds(server), begin_of = now();
    const double keys = rate(batches, start), wall = now() - begin_of;
    const double share = (cpu_seconds(server) - cpu) / wall;
    std::cout << "  " << what << " " << keys / 1e6 << " M keys/s; the server used " << share
              << " cores: " << keys / share / 1e6 << " M keys/s per core\n";
  };
  report("pull", [&](const Batch& batch, size_t b) {
    return client.pull_sparse(0, batch, buffers[b].data(), Rows::kUnique);
  });
  report("push", [&](const Batch& batch, size_t b) {
    return client.push_sparse(0, batch, buffers[b].data(), 1e-9f, Rows::kUnique);
  });
  std::cout << to_text(client.stats()[0]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto argument = [&](int i, long fallback) {
      return argc > i ? std::strtol(argv[i], nullptr, 10) : fallback;
    };
    const long rows = argument(1, 10'000'000), dim = argument(2, 16), threads = argument(3, 1);
    check_arg(rows > 0 && dim > 0 && threads > 0, "usage: bench_ps_rpc [ROWS [DIM [THREADS]]]");
    JobSpec job{.workers = 1, .servers = 1};
    job.sparse.push_back({.name = "table", .dim = dim, .rule = bench::sgd_rule()});
    int ends[2];
    check_arg(pipe(ends) == 0, "no pipe");
    const pid_t child = fork();
    if (child == 0) {
      Server server({.job = job,
                     .endpoint = "127.0.0.1:0",
                     .secret = "bench",
                     .threads = static_cast<int>(threads)});
      const std::string endpoint = server.endpoint();
      if (write(ends[1], endpoint.c_str(), endpoint.size() + 1) < 0) return 1;
      server.run();
      return 0;
    }
    char endpoint[256] = {};
    check_arg(read(ends[0], endpoint, sizeof endpoint - 1) > 0, "the server did not start");
    Client client({.job = job, .servers = {endpoint}, .secret = "bench"});
    measure(client, child, static_cast<uint64_t>(rows), dim);
    client.goodbye();
    waitpid(child, nullptr, 0);
  } catch (const std::exception& e) {
    std::cerr << argv[0] << ": " << e.what() << '\n';
    return 1;
  }
}
