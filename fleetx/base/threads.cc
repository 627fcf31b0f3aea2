#include "fleetx/base/threads.h"

#include <immintrin.h>
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <string>

#include "fleetx/base/cgroup.h"
#include "fleetx/base/env.h"
#include "fleetx/base/error.h"

namespace fleetx {
namespace {

std::atomic<int>& current() {
  static std::atomic<int> threads{0};
  return threads;
}

std::string topology(int cpu, const char* file) {
  std::ifstream in(str("/sys/devices/system/cpu/cpu", cpu, "/topology/", file));
  std::string line;
  std::getline(in, line);
  return line;
}

std::string one_decimal(double value) {
  char text[32];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 1);
  return error == std::errc{} ? std::string(text, end) : "?";
}

}  // namespace

int physical_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    const std::string core = topology(cpu, "core_id"),
                      package = topology(cpu, "physical_package_id");
    // Where the kernel tells no topology, every logical CPU counts as a core.
    cores.insert(core.empty() ? str("cpu", cpu) : package + "/" + core);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

int default_threads() {
  for (const char* variable : {"FLEETX_THREADS", "OMP_NUM_THREADS"}) {
    if (const auto n = env::integer(variable)) {
      check_arg(*n >= 1 && *n <= 1024, variable, "=", *n, ": must be between 1 and 1024");
      return *n;
    }
  }
  return threads_within(physical_cores(), cgroup::cpu_quota());
}

int threads_within(int cores, double quota) {
  if (quota <= 0 || quota >= cores) return cores;
  return std::max(1, static_cast<int>(std::floor(quota + 0.5)));
}

int num_threads() {
  const int threads = current().load(std::memory_order_relaxed);
  if (threads != 0) [[likely]]
    return threads;
  set_num_threads(default_threads());
  return current().load();
}

void set_num_threads(int threads) {
  check_arg(threads >= 1 && threads <= 1024, "number of threads is ", threads,
            "; must be between 1 and 1024");
  current().store(threads);
  tell_openmp();
}

std::string describe_threads() {
  const int threads = num_threads(), cores = physical_cores();
  const double quota = cgroup::cpu_quota();
  return str(threads, threads == 1 ? " compute thread on " : " compute threads on ", cores,
             cores == 1 ? " physical core" : " physical cores",
             quota > 0 && quota < cores ? str(" (cgroup quota ", one_decimal(quota), ")") : "");
}

void tell_openmp() {
  omp_set_dynamic(0);
  omp_set_num_threads(num_threads());
}

void flush_denormals() {
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _mm_setcsr(_mm_getcsr() | 0x0040u);  // denormals are zero
}

}  // namespace fleetx
