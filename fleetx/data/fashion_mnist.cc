#include "fleetx/data/fashion_mnist.h"

#include <algorithm>
#include <filesystem>

#include "fleetx/base/env.h"
#include "fleetx/data/idx.h"

namespace fleetx::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDebianFolder = "/usr/share/datasets/fashion-mnist";
constexpr float kMean = 0.2860f, kDeviation = 0.3530f;  // of the training images in [0, 1]

fs::path folder_of(const FashionMnistOptions& options) {
  if (!options.folder.empty()) return options.folder;
  const auto root = env::get("FLEETX_DATA");
  if (!root) return kDebianFolder;
  // The variable may name the folder of all data sets or this one.
  const fs::path below = fs::path(*root) / "fashion-mnist";
  return fs::exists(below) ? below : fs::path(*root);
}

Tensor load(const fs::path& folder, const std::string& name) {
  for (const char* ending : {".gz", ""}) {
    const fs::path path = folder / (name + ending);
    if (fs::exists(path)) return load_idx(path.string());
  }
  fail(Error::Kind::kInvalidArgument,
       str("Fashion-MNIST is not there: no ", (folder / name).string(),
           ".gz; install the Debian package dataset-fashion-mnist (apt install "
           "dataset-fashion-mnist), or set FLEETX_DATA to the folder that has it"));
}

}  // namespace

FashionMnist::FashionMnist(const FashionMnistOptions& options)
    : fields_{{"image", DType::kF32, {1, 28, 28}}, {"label", DType::kI64, {1}}} {
  const fs::path folder = folder_of(options);
  const std::string part = options.split == Split::kTrain ? "train" : "t10k";
  images_ = load(folder, part + "-images-idx3-ubyte");
  labels_ = load(folder, part + "-labels-idx1-ubyte");
  const Shape& shape = images_.shape();
  check_file(shape.rank() == 3 && shape[1] == 28 && shape[2] == 28, folder.string(), ": ", part,
             " images have shape ", shape, ", expected [n,28,28]");
  check_file(labels_.shape() == Shape{shape[0]}, folder.string(), ": ", shape[0], " ", part,
             " images but labels of shape ", labels_.shape());
  const auto labels = labels_.data<uint8_t>();
  check_file(std::all_of(labels.begin(), labels.end(), [](uint8_t l) { return l < 10; }),
             folder.string(), ": a ", part, " label is not below 10");
  check_arg(options.limit >= 0, "Fashion-MNIST: limit is ", options.limit,
            "; must not be negative");
  size_ = options.limit > 0 ? std::min(options.limit, shape[0]) : shape[0];
}

void FashionMnist::read(const SampleId& id, std::span<void* const> out) const {
  const uint8_t* pixels = images_.data<uint8_t>().data() + id.index * 28 * 28;
  auto* image = static_cast<float*>(out[0]);
  constexpr float scale = 1.0f / (255.0f * kDeviation), shift = kMean / kDeviation;
  for (int i = 0; i < 28 * 28; ++i) image[i] = static_cast<float>(pixels[i]) * scale - shift;
  *static_cast<int64_t*>(out[1]) = labels_.data<uint8_t>()[static_cast<size_t>(id.index)];
}

}  // namespace fleetx::data
