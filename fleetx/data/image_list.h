// Labelled JPEG files in the ImageNet list style: a text file with lines `path label`, paths
// relative to the folder of the list. Training pictures are cropped and mirrored at random,
// reproducibly from (seed, epoch, sample); validation pictures are resized and center-cropped.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fleetx/data/dataset.h"
#include "fleetx/data/image.h"

namespace fleetx::data {

// How pictures that cannot be decoded are handled.
enum class Damaged {
  kFail,    // an error that names list, line and file
  kReplace  // a warning; replaced by the next intact picture of the list, see damaged()
};

struct ImageListOptions {
  std::string list = {};   // .../train.txt
  bool augment = false;    // true: for training
  int size = 224;          // of the square that the network gets
  int resize = 256;        // validation: short side before cutting; training ignores it
  float min_area = 0.08f;  // training: smallest part of a picture's area
  int64_t classes = 0;     // labels must be below; 0: the largest label of the list + 1
  Normalization norm = {};
  Damaged damaged = Damaged::kFail;
};

// Fields: image f32 [3,size,size], label i64 [1].
class ImageList final : public Dataset {
 public:
  explicit ImageList(ImageListOptions options);

  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(const SampleId& id, std::span<void* const> out) const override;
  int64_t classes() const { return classes_; }
  // Skipped lines: after the download of a shard (download.h) the list also names pictures that
  // only other machines have.
  int64_t elsewhere() const { return elsewhere_; }
  // Pictures that were found damaged and replaced so far.
  int64_t damaged() const;

 private:
  struct Entry {
    std::string path;
    int64_t label;
    int line;
  };
  Crop crop_of(const SampleId& id, int width, int height) const;
  void leave_out_what_is_elsewhere();
  std::string bytes_of(const Entry& entry) const;
  void decode(const SampleId& id, float* out) const;
  void note_damage(int64_t index, const char* what) const;

  ImageListOptions options_;
  std::vector<Field> fields_;
  std::vector<Entry> entries_;
  int64_t classes_ = 0;
  int64_t elsewhere_ = 0;
  mutable std::mutex mutex_;
  mutable std::set<int64_t> damaged_;  // their numbers
};

}  // namespace fleetx::data
