// Fashion-MNIST (Zalando Research): 60 000 training and 10 000 test images of clothes, 28x28 grey,
// ten classes. Debian packages it as dataset-fashion-mnist.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "fleetx/data/dataset.h"

namespace fleetx::data {

inline constexpr std::array<std::string_view, 10> kFashionClasses{
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"};

enum class Split { kTrain, kTest };

struct FashionMnistOptions {
  Split split = Split::kTrain;
  std::string folder = {};  // empty: FLEETX_DATA, else where the Debian package puts it
  int64_t limit = 0;        // only the first so many; 0: all
};

// Fields: image f32 [1,28,28] of mean 0 and deviation 1 over the training set, label i64 [1].
class FashionMnist final : public Dataset {
 public:
  explicit FashionMnist(const FashionMnistOptions& options = {});

  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(const SampleId& id, std::span<void* const> out) const override;

 private:
  std::vector<Field> fields_;
  Tensor images_, labels_;  // u8
  int64_t size_ = 0;
};

}  // namespace fleetx::data
