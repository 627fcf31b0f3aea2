// How fast a sparse table of the parameter server is, and how much memory it takes, without
// sockets: rows made, pulled and updated by one thread, ids uniform or by Zipf's law; and how fast
// it trains with a third of that memory and a disk (in the folder TMPDIR, or /tmp). usage:
// bench_ps_table [ROWS [DIM [THREADS]]]     (default: 10000000 16 1)
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "bench/ps_rule.h"
#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/ps/id_batch.h"
#include "fleetx/ps/row_index.h"
#include "fleetx/ps/row_memory.h"
#include "fleetx/ps/sparse_table.h"

namespace {

using namespace fleetx;
using namespace fleetx::ps;

constexpr size_t kRequest = 4096;  // ids
constexpr double kSeconds = 0.7;
constexpr int kTimes = 4;  // the best of

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double resident_bytes() {
  std::ifstream in("/proc/self/statm");
  double all = 0, resident = 0;
  in >> all >> resident;
  return resident * 4096;
}

// The k-th most frequent of n ids, by the inverse of the distribution function of k^-s, s = 1.05.
uint64_t zipf(double u, double n) {
  const double a = 1 - 1.05;
  return static_cast<uint64_t>(std::pow(u * (std::pow(n, a) - 1) + 1, 1 / a)) - 1;
}

uint64_t id_of(uint64_t number) { return mix(7, number); }

std::vector<uint64_t> ids_for(size_t count, uint64_t rows, bool by_zipf, uint64_t seed) {
  std::vector<uint64_t> ids(count);
  const Philox random(seed, 1);
  for (size_t i = 0; i < count; ++i) {
    const auto b = random.block(i);
    const double u = (static_cast<double>(b[0]) + static_cast<double>(b[1]) * 0x1p-32) * 0x1p-32;
    const double n = static_cast<double>(rows);
    ids[i] = id_of(by_zipf ? std::min(zipf(u, n), rows - 1) : static_cast<uint64_t>(u * n));
  }
  return ids;
}

// Ids per second of all threads; call(ids of one request, thread).
template <class Call>
double rate_once(const std::vector<uint64_t>& ids, int threads, const Call& call) {
  std::vector<std::thread> team;
  std::vector<double> rates(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t)
    team.emplace_back([&, t] {
      const double begin = cpu_now();
      size_t done = 0, at = ids.size() / static_cast<size_t>(threads) * static_cast<size_t>(t);
      double end = begin;
      do {
        for (int i = 0; i < 16; ++i, at = (at + kRequest) % (ids.size() - kRequest))
          call(std::span(ids).subspan(at, kRequest), t);
        done += 16 * kRequest;
        end = cpu_now();
      } while (end < begin + kSeconds);
      rates[static_cast<size_t>(t)] = static_cast<double>(done) / (end - begin);
    });
  for (std::thread& thread : team) thread.join();
  double sum = 0;
  for (const double r : rates) sum += r;
  return sum;
}

// Memory of the same size as a table's, read at two random lines per id, whose addresses are known
// before: what no table can be faster than.
class Limit {
 public:
  Limit(uint64_t rows, int64_t dim)
      : row_floats_(static_cast<size_t>(dim)),
        index_lines_(rows * 15 / 64 + 1),
        rows_(rows),
        index_(index_lines_ * 64),
        values_(rows * row_floats_ * sizeof(float)) {
    std::memset(index_.data(), 1, index_.bytes());
    std::memset(values_.data(), 0, values_.bytes());
  }
  void pull(std::span<const uint64_t> ids, float* to) const {
    const char* const index = static_cast<const char*>(index_.data());
    const float* const values = static_cast<const float*>(values_.data());
    const auto index_line = [&](uint64_t id) {
      return index + ((uint64_t{static_cast<uint32_t>(id)} * index_lines_) >> 32) * 64;
    };
    const auto row = [&](uint64_t id) {
      return values + (((id >> 32) * rows_) >> 32) * row_floats_;
    };
    constexpr size_t kAhead = 32;
    uint64_t seen = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i + kAhead < ids.size()) {
        prefetch_line(index_line(ids[i + kAhead]));
        prefetch_line(row(ids[i + kAhead]));
      }
      seen += static_cast<unsigned char>(*index_line(ids[i]));
      std::memcpy(to + i * row_floats_, row(ids[i]), row_floats_ * sizeof(float));
    }
    to[0] = static_cast<float>(seen);
  }

 private:
  size_t row_floats_;
  uint64_t index_lines_, rows_;
  Mapping index_, values_;
};

SparseSpec spec_of(int64_t dim, bool adagrad) {
  SparseSpec spec{.name = "table", .dim = dim};
  spec.rule = adagrad ? bench::adagrad_rule() : bench::sgd_rule();
  spec.initializer = {.kind = Initializer::Kind::kUniform, .a = -0.1f, .b = 0.1f, .seed = 1};
  return spec;
}

void make_rows(SparseTable& table, uint64_t rows) {
  std::vector<uint64_t> ids(kRequest);
  std::vector<float> values(kRequest * static_cast<size_t>(table.dim()));
  for (uint64_t first = 0; first < rows; first += kRequest) {
    ids.resize(std::min<uint64_t>(kRequest, rows - first));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = id_of(first + i);
    table.pull(ids, values.data());
  }
}

// Training from disk: batches of ids by Zipf's law, each id of a batch once as workers send them,
// pulled and pushed by one thread; by the clock, since the disk's threads work, too. The same for a
// table in memory, in turn with it.
void measure_disk(uint64_t rows, int64_t dim) {
  const SparseSpec spec = spec_of(dim, false);
  SparseTable in_memory(spec);
  make_rows(in_memory, rows);
  const int64_t bytes = in_memory.bytes();
  MemoryBudget budget(bytes / 3);
  const auto folder = std::filesystem::temp_directory_path() / str("bench_ps_table.", getpid());
  DiskRows disk(folder.string());
  SparseTable table(spec, 1, {.budget = &budget, .disk = &disk});
  make_rows(table, rows);

  const auto drawn = ids_for(size_t{1} << 23, rows, true, 5);
  const std::vector<float> gradients(kRequest * static_cast<size_t>(dim), 0.001f);
  std::vector<float> values(gradients.size());
  size_t at = 0;
  const auto rate = [&](SparseTable& t, double seconds) {
    double spent = 0;
    size_t done = 0;
    while (spent < seconds) {
      const std::vector<int64_t> ids(drawn.begin() + static_cast<std::ptrdiff_t>(at),
                                     drawn.begin() + static_cast<std::ptrdiff_t>(at + kRequest));
      at = (at + kRequest) % drawn.size();
      const IdBatch batch(ids, 1);
      const double begin = now();
      t.pull(batch.unique(), values.data());
      t.push(batch.unique(), gradients.data(), 1e-9f);
      spent += now() - begin;
      done += batch.unique().size();
    }
    return static_cast<double>(done) / spent;
  };
  rate(table, 5 * kSeconds);  // until the rows that are used most are in memory
  double memory_rate = 0, disk_rate = 0;
  for (int time = 0; time < kTimes; ++time) {
    memory_rate += rate(in_memory, kSeconds) / kTimes;
    disk_rate += rate(table, 2 * kSeconds) / kTimes;
  }
  std::cout << "disk: " << static_cast<double>(table.rows()) << " rows, budget "
            << static_cast<double>(budget.bytes()) / 1e6 << " MB, table "
            << static_cast<double>(bytes) / 1e6 << " MB, " << static_cast<double>(table.resident())
            << " rows in memory; trains " << disk_rate / 1e6 << " M keys/s, in memory "
            << memory_rate / 1e6 << " M keys/s: ratio " << disk_rate / memory_rate << "\n";
}

void measure(uint64_t rows, int64_t dim, int threads, bool adagrad) {
  const SparseSpec spec = spec_of(dim, adagrad);
  const double before = resident_bytes();
  SparseTable table(spec, threads);
  std::vector<std::vector<float>> buffer(
      static_cast<size_t>(threads),
      std::vector<float>(kRequest * static_cast<size_t>(dim), 0.001f));
  const double begin = now();
  make_rows(table, rows);
  const double made = now() - begin, n = static_cast<double>(table.rows());
  const double record = static_cast<double>(table.record_floats()) * 4;
  const double resident = (resident_bytes() - before) / n;
  std::cout << (adagrad ? "adagrad" : "sgd") << ", " << n << " rows of " << dim << ", " << threads
            << " threads: bytes per row " << static_cast<double>(table.bytes()) / n << " (resident "
            << resident << "), over record " << resident / record << "; made " << n / made / 1e6
            << " M/s\n";
  const Limit limit(rows, dim);
  for (const bool by_zipf : {false, true}) {
    const auto ids = ids_for(size_t{1} << 23, rows, by_zipf, 3);
    double pull = 0, push = 0, most = 0;
    for (int time = 0; time < kTimes; ++time) {
      const auto better = [&](double& best, const auto& call) {
        best = std::max(best, rate_once(ids, threads, call));
      };
      better(most, [&](std::span<const uint64_t> part, int t) {
        limit.pull(part, buffer[static_cast<size_t>(t)].data());
      });
      better(pull, [&](std::span<const uint64_t> part, int t) {
        table.pull(part, buffer[static_cast<size_t>(t)].data());
      });
      better(push, [&](std::span<const uint64_t> part, int t) {
        table.push(part, buffer[static_cast<size_t>(t)].data(), 1e-9f);
      });
    }
    std::cout << "  " << (by_zipf ? "zipf 1.05" : "uniform  ") << "  pull " << pull / 1e6
              << " M keys/s, push " << push / 1e6 << " M keys/s; two lines of memory " << most / 1e6
              << " M/s\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto argument = [&](int i, long fallback) {
      return argc > i ? std::strtol(argv[i], nullptr, 10) : fallback;
    };
    const long rows = argument(1, 10'000'000), dim = argument(2, 16), threads = argument(3, 1);
    fleetx::check_arg(rows > 0 && dim > 0 && threads > 0,
                      "usage: bench_ps_table [ROWS [DIM [THREADS]]]");
    for (const bool adagrad : {false, true})
      measure(static_cast<uint64_t>(rows), dim, static_cast<int>(threads), adagrad);
    measure_disk(static_cast<uint64_t>(rows), dim);
  } catch (const std::exception& e) {
    std::cerr << argv[0] << ": " << e.what() << '\n';
    return 1;
  }
}
