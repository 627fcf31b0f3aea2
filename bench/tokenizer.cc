// Tokens per second of one core: WordPiece over the lines of a file, in CPU time of the one thread.
// A line of JSON; bench/run calls it.
//   bench_tokenizer VOCAB FILE [SECONDS]
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"
#include "fleetx/data/wordpiece.h"

using namespace fleetx;

namespace {

double cpu_now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int run(const std::string& vocab, const std::string& file, double seconds) {
  const data::WordPiece tokenizer(data::Vocabulary::load(vocab));
  const std::string text = read_file(file);
  const auto lines = data::split_lines(text);
  double best = 0;
  int64_t tokens = 0;
  uint64_t sum = 0;  // that the peer has to get, too
  for (const double begin = cpu_now(); cpu_now() < begin + seconds;) {
    const double start = cpu_now();
    tokens = 0;
    sum = 0;
    std::vector<int32_t> ids;
    for (const std::string_view line : lines) {
      ids.clear();
      tokenizer.encode(line, ids);
      tokens += static_cast<int64_t>(ids.size());
      for (const int32_t id : ids) sum += static_cast<uint64_t>(id);
    }
    best = std::max(best, static_cast<double>(tokens) / (cpu_now() - start));
  }
  std::cout << "{\"tokens_per_s\": " << best
            << ", \"best_s\": " << static_cast<double>(tokens) / best << ", \"tokens\": " << tokens
            << ", \"sum\": " << sum << ", \"mb_per_s\": "
            << static_cast<double>(text.size()) / static_cast<double>(tokens) * best * 1e-6
            << "}\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    check_arg(argc == 3 || argc == 4, "usage: bench_tokenizer VOCAB FILE [SECONDS]");
    return run(argv[1], argv[2], argc > 3 ? std::atof(argv[3]) : 3.0);
  } catch (const std::exception& e) {
    std::cerr << "bench_tokenizer: " << e.what() << "\n";
    return 1;
  }
}
