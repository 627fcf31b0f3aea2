// Lines per second of one core that reads samples of a recommender: 13 numbers, 26 ids below
// 1,000,001 and a label, in batches of 512. The file is in the page cache; reading, checking and
// parsing it into columns counts, in CPU time of the one thread. A line of JSON; bench/run calls
// it.
//   bench_reader text|binary [LINES [SECONDS]]
//   bench_reader write FILE [LINES]                 the text alone, for peers
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "fleetx/base/rng.h"
#include "fleetx/data/multi_slot.h"
#include "fleetx/data/sample_file.h"

using namespace fleetx;

namespace {

constexpr int64_t kBatch = 512, kLines = 200'000;

double cpu_now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::vector<data::Slot> slots() {
  std::vector<data::Slot> out{{"dense", DType::kF32, 13}};
  for (int i = 1; i <= 26; ++i) out.push_back({str("C", i), DType::kI64, 1});
  out.push_back({"label", DType::kI64, 1});
  return out;
}

void write_text(const std::string& path, int64_t lines) {
  std::ofstream out(path, std::ios::binary);
  std::string line;
  for (int64_t i = 0; i < lines; ++i) {
    const Philox random(5, static_cast<uint64_t>(i));
    line = "13";
    for (uint64_t k = 0; k < 13; ++k) {
      char number[32];
      std::snprintf(number, sizeof number, " %.4f", static_cast<double>(random.uniform(k)));
      line += number;
    }
    // Half of the slots uniform, half with a few frequent ids.
    for (uint64_t k = 0; k < 26; ++k) {
      const double u = static_cast<double>(random.uniform(64 + k));
      const double id = k % 2 == 0 ? u * 1'000'000 : std::pow(1'000'000, u);
      line += str(" 1 ", 1 + static_cast<int64_t>(id));
    }
    out << line << (i % 3 == 0 ? " 1 1\n" : " 1 0\n");
  }
  check_arg(out.good(), "cannot write ", path);
}

void write_binary(const std::string& text, const std::string& path) {
  data::SampleFile file(text, {.format = data::multi_slot_format(slots())});
  data::BinaryWriter writer(path, slots());
  for (;;) {
    data::Samples samples(slots());
    if (file.read(4096, samples) == 0) break;
    writer.add(samples);
  }
  writer.finish();
}

// One pass; the number of lines.
int64_t pass(const std::string& path, const std::shared_ptr<const data::LineFormat>& format) {
  data::SampleFile file(path, {.format = format});
  int64_t lines = 0;
  for (int64_t got = 1; got > 0;) {
    data::Samples samples(format->slots());
    samples.reserve(kBatch);
    while (samples.count < kBatch && (got = file.read(kBatch - samples.count, samples)) > 0) {
    }
    lines += samples.count;
  }
  return lines;
}

int run(const std::string& form, int64_t lines, double seconds) {
  check_arg(form == "text" || form == "binary", "'", form, "' is not text or binary");
  const std::string text = str("/tmp/bench_reader.", getpid()), binary = text + ".bin";
  write_text(text, lines);
  if (form == "binary") write_binary(text, binary);
  const std::string& path = form == "text" ? text : binary;
  const std::shared_ptr<const data::LineFormat> format = data::multi_slot_format(slots());
  double best = 0;
  for (double begin = cpu_now(); cpu_now() < begin + seconds;) {
    const double start = cpu_now();
    const int64_t done = pass(path, format);
    FLEETX_CHECK(done == lines, done, " lines of ", lines);
    best = std::max(best, static_cast<double>(done) / (cpu_now() - start));
  }
  const double bytes = static_cast<double>(std::filesystem::file_size(path));
  std::cout << "{\"form\": \"" << form << "\", \"lines_per_s\": " << best
            << ", \"best_s\": " << static_cast<double>(kBatch) / best
            << ", \"bytes_per_line\": " << bytes / static_cast<double>(lines)
            << ", \"gb_per_s\": " << bytes / static_cast<double>(lines) * best * 1e-9 << "}\n";
  std::filesystem::remove(text);
  std::filesystem::remove(binary);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    check_arg(argc >= 2 && argc <= 4,
              "usage: bench_reader text|binary [LINES [SECONDS]], or write FILE [LINES]");
    if (std::string_view(argv[1]) == "write" && argc > 2) {
      write_text(argv[2], argc > 3 ? std::atoll(argv[3]) : kLines);
      return 0;
    }
    return run(argv[1], argc > 2 ? std::atoll(argv[2]) : kLines,
               argc > 3 ? std::atof(argv[3]) : 3.0);
  } catch (const std::exception& e) {
    std::cerr << "bench_reader: " << e.what() << "\n";
    return 1;
  }
}
