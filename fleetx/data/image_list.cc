#include "fleetx/data/image_list.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "fleetx/base/file.h"
#include "fleetx/base/log.h"
#include "fleetx/base/rng.h"
#include "fleetx/data/download.h"
#include "fleetx/data/jpeg.h"

namespace fleetx::data {
namespace {

constexpr std::string_view kSpace = " \t\r";
constexpr int64_t kMaxReplaced = 100;  // in a row: more means that the list or folder is wrong
constexpr size_t kMaxWarnings = 20;

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// The largest of 1/2, 1/4, 1/8 that keeps the crop at least as large as the result: decoding less
// is faster, and it averages pixels that bilinear sampling would skip.
int reduction(const Crop& crop, int size) {
  int reduce = 1;
  while (reduce < 8 && std::min(crop.width, crop.height) >= static_cast<float>(size * reduce * 2))
    reduce *= 2;
  return reduce;
}

// ImageNet lists name .JPEG files; some copies of the set have .jpeg.
std::string found(const std::string& path) {
  const size_t ending = path.rfind(".JPEG");
  if (ending == std::string::npos || std::filesystem::exists(path)) return path;
  const std::string other = path.substr(0, ending) + ".jpeg";
  return std::filesystem::exists(other) ? other : path;
}

}  // namespace

ImageList::ImageList(ImageListOptions options)
    : options_(std::move(options)),
      fields_{{"image", DType::kF32, {3, options_.size, options_.size}},
              {"label", DType::kI64, {1}}} {
  const ImageListOptions& o = options_;
  check_arg(o.size >= 1 && o.size <= 4096, "image list: size is ", o.size,
            "; must be between 1 and 4096");
  check_arg(o.augment || o.resize >= o.size, "image list: resize is ", o.resize,
            "; must be at least size, ", o.size);
  check_arg(o.min_area > 0 && o.min_area <= 1, "image list: min_area is ", o.min_area,
            "; must be above 0 and at most 1");
  const std::filesystem::path folder = std::filesystem::path(o.list).parent_path();
  const std::string text = read_file(o.list);
  int line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view whole = trim(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++line;
    if (whole.empty()) continue;
    const size_t space = whole.find_last_of(kSpace);
    int64_t label = -1;
    if (space != std::string_view::npos) {
      const char* last = whole.data() + whole.size();
      const auto [rest, error] = std::from_chars(whole.data() + space + 1, last, label);
      if (error != std::errc{} || rest != last) label = -1;
    }
    check_file(label >= 0, o.list, ":", line, ": expected `path label`, got `",
               whole.substr(0, 200), "`");
    check_file(o.classes == 0 || label < o.classes, o.list, ":", line, ": label ", label,
               " is not below the number of classes, ", o.classes);
    classes_ = std::max(classes_, label + 1);
    entries_.push_back({(folder / trim(whole.substr(0, space))).string(), label, line});
  }
  check_file(!entries_.empty(), o.list, ": names no picture");
  if (o.classes > 0) classes_ = o.classes;
  if (has_part_only(folder.string())) leave_out_what_is_elsewhere();
}

void ImageList::leave_out_what_is_elsewhere() {
  elsewhere_ = static_cast<int64_t>(std::erase_if(
      entries_, [](const Entry& e) { return !std::filesystem::exists(found(e.path)); }));
  check_file(!entries_.empty(), options_.list, ": none of its ", elsewhere_,
             " pictures is in the share of the set that was downloaded here");
  if (elsewhere_ > 0)
    log::info("data", options_.list, ": ", size(), " of ", size() + elsewhere_,
              " pictures are in the share of the set that was downloaded here");
}

Crop ImageList::crop_of(const SampleId& id, int width, int height) const {
  if (!options_.augment) return center_crop(width, height, options_.resize, options_.size);
  const Philox random(id.seed, mix(mix(stable_hash("augment"), static_cast<uint64_t>(id.epoch)),
                                   static_cast<uint64_t>(id.index)));
  std::array<float, kCropNumbers> numbers;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = random.uniform(i);
  return random_crop(width, height, options_.min_area, numbers);
}

std::string ImageList::bytes_of(const Entry& entry) const {
  try {
    return read_file(found(entry.path));
  } catch (const Error& e) {
    fail(e.kind(), str(options_.list, ":", entry.line, ": ", e.what()));
  }
}

void ImageList::decode(const SampleId& id, float* out) const {
  const Entry& entry = entries_[static_cast<size_t>(id.index)];
  const std::string bytes = bytes_of(entry);
  JpegReader jpeg(bytes, str(options_.list, ":", entry.line, ": ", entry.path));
  const Crop crop = crop_of(id, jpeg.width(), jpeg.height());
  static thread_local Image image;  // reused for all pictures of this thread
  const Crop part = jpeg.decode_part(crop, reduction(crop, options_.size), image);
  resample(image, part, options_.size, options_.norm, out);
}

int64_t ImageList::damaged() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int64_t>(damaged_.size());
}

void ImageList::note_damage(int64_t index, const char* what) const {
  const std::scoped_lock lock(mutex_);
  if (damaged_.insert(index).second && damaged_.size() <= kMaxWarnings)
    log::warning("data", what, "; the next picture takes its place");
}

void ImageList::read(const SampleId& id, std::span<void* const> out) const {
  SampleId at = id;
  for (int64_t tries = 1;; ++tries) {
    try {
      decode(at, static_cast<float*>(out[0]));
      break;
    } catch (const Error& e) {
      if (e.kind() != Error::Kind::kCorrupt || options_.damaged == Damaged::kFail) throw;
      check_file(tries < std::min(size(), kMaxReplaced), e.what(), " (and the ", tries - 1,
                 " pictures before it)");
      note_damage(at.index, e.what());
    }
    at.index = (at.index + 1) % size();
  }
  *static_cast<int64_t*>(out[1]) = entries_[static_cast<size_t>(at.index)].label;
}

}  // namespace fleetx::data
