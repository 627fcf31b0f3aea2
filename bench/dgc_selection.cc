// How long dgc takes to find the k largest elements of a gradient, against writing the gradient
// twice. One thread; for each size a line of JSON.
// usage: bench_dgc_selection [SECONDS]     (default: 2, for each size)
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "fleetx/base/error.h"
#include "fleetx/base/rng.h"
#include "fleetx/base/threads.h"
#include "fleetx/ops/lib/largest.h"

namespace {

using namespace fleetx;

constexpr double kSparsity = 0.999;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Call>
void keep_best(double& best, const Call& call) {
  const double begin = now();
  call();
  best = std::min(best, now() - begin);
}

void measure(int64_t n, double seconds) {
  const auto count = static_cast<size_t>(n);
  const auto k = static_cast<int64_t>(static_cast<double>(n) * (1 - kSparsity));
  std::vector<float> x(count), copy(count);
  const Philox random(1, 1);
  for (size_t i = 0; i < count; ++i) x[i] = random.normal(i);
  std::vector<uint64_t> places(count / 2 + 1);  // 8-byte boundary
  std::vector<uint32_t> scratch(ops::kLargestScratch / sizeof(uint32_t));
  auto* const found = reinterpret_cast<uint32_t*>(places.data());
  double select = 1e9, write = 1e9;
  ops::Cut cut;
  for (const double end = now() + seconds; now() < end;) {
    keep_best(select, [&] { cut = ops::find_largest(x.data(), n, k, found, scratch.data()); });
    keep_best(write, [&] {
      for (int time = 0; time < 2; ++time) {
        std::memset(copy.data(), time, count * sizeof(float));
        asm volatile("" : : "r"(copy.data()) : "memory");  // it is to be written
      }
    });
  }
  int64_t taken = 0;
  for (size_t i = 0; i < count; ++i) taken += cut.takes(x[i], static_cast<uint32_t>(i));
  std::cout << nlohmann::ordered_json{{"elements", n},
                                      {"k", k},
                                      {"taken", taken},
                                      {"select_s", select},
                                      {"two_writes_s", write}}
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
    check_arg(seconds > 0, "usage: bench_dgc_selection [SECONDS]");
    set_num_threads(1);
    // A bias is sent whole; a layer of ResNet-50, one of BERT, and BERT's words.
    for (const int64_t n : {16'384L, 589'824L, 2'359'296L, 23'440'896L}) measure(n, seconds);
  } catch (const std::exception& e) {
    std::cerr << argv[0] << ": " << e.what() << '\n';
    return 1;
  }
}
