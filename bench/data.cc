// Pictures per second of one thread: the training path (file, decode, random crop, mirror,
// normalise, 224 x 224 f32) and libjpeg-turbo's decoding of the same pictures alone, in turns. A
// line of JSON; bench/data calls it.
//   bench_data LIST SECONDS
#include <turbojpeg.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "fleetx/base/file.h"
#include "fleetx/data/image_list.h"
#include "fleetx/data/loader.h"

using namespace fleetx;

namespace {

constexpr int kRounds = 6;

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Pictures per second of `work(i)`, called for `seconds`.
template <class Work>
double rate(double seconds, const Work& work) {
  int64_t done = 0;
  const double begin = now();
  double end = begin;
  for (; end - begin < seconds; end = now()) done += work(done);
  return static_cast<double>(done) / (end - begin);
}

std::vector<std::string> pictures_of(const std::string& list) {
  std::vector<std::string> out;
  std::ifstream lines(list);
  const auto folder = std::filesystem::path(list).parent_path();
  for (std::string path, label; lines >> path >> label;)
    out.push_back(read_file((folder / path).string()));
  return out;
}

int run(const std::string& list, double seconds) {
  const std::vector<std::string> pictures = pictures_of(list);
  const tjhandle codec = tjInitDecompress();
  std::vector<unsigned char> rgb;
  const auto decode = [&](int64_t i) -> int64_t {
    const std::string& bytes = pictures[static_cast<size_t>(i) % pictures.size()];
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    int width = 0, height = 0, subsampling = 0, colors = 0;
    tjDecompressHeader3(codec, data, bytes.size(), &width, &height, &subsampling, &colors);
    rgb.resize(static_cast<size_t>(width * height * 3));
    const int bad =
        tjDecompress2(codec, data, bytes.size(), rgb.data(), width, 0, height, TJPF_RGB, 0);
    FLEETX_CHECK(bad == 0, tjGetErrorStr2(codec));
    return 1;
  };
  data::Loader train(
      std::make_shared<data::ImageList>(data::ImageListOptions{.list = list, .augment = true}),
      {.batch = 32, .shuffle = true, .drop_last = true, .threads = 0});
  data::Loader val(std::make_shared<data::ImageList>(data::ImageListOptions{.list = list}),
                   {.batch = 32, .drop_last = true, .threads = 0});
  const auto next = [](data::Loader& loader) {
    return [&](int64_t) { return loader.next().size; };
  };
  double alone = 0, training = 0, validation = 0;
  for (int round = 0; round < kRounds; ++round) {
    alone = std::max(alone, rate(seconds / kRounds, decode));
    training = std::max(training, rate(seconds / kRounds, next(train)));
    validation = std::max(validation, rate(seconds / kRounds, next(val)));
  }
  tjDestroy(codec);
  std::cout << "{\"decode\": " << alone << ", \"train\": " << training
            << ", \"val\": " << validation << "}\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    check_arg(argc == 3, "usage: bench_data LIST SECONDS");
    return run(argv[1], std::atof(argv[2]));
  } catch (const std::exception& e) {
    std::cerr << "bench_data: " << e.what() << "\n";
    return 1;
  }
}
