// A Dataset is a numbered collection of samples; a Loader (loader.h) makes batches of it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetx/tensor/tensor.h"

namespace fleetx::data {

// A field of a sample: the name under which it is fed, and its type.
struct Field {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

// Identifies a sample and all inputs of its random augmentation.
struct SampleId {
  int64_t index = 0;
  int64_t epoch = 0;
  uint64_t seed = 0;
};

struct Batch {
  int64_t size = 0;                                   // samples
  std::vector<std::pair<std::string, Tensor>> feeds;  // for Executor::run

  const Tensor& at(std::string_view field) const;
};

class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual const std::vector<Field>& fields() const = 0;
  // Writes one sample: out[i] is the memory of field i. Called from several threads at once; a
  // pure function of `id`.
  virtual void read(const SampleId& id, std::span<void* const> out) const = 0;
};

// Samples in memory: the rows of tensors of equal first dimension.
class TensorDataset final : public Dataset {
 public:
  explicit TensorDataset(std::map<std::string, Tensor> tensors);

  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(const SampleId& id, std::span<void* const> out) const override;

 private:
  int64_t size_ = 0;
  std::vector<Field> fields_;
  std::vector<Tensor> tensors_;
};

}  // namespace fleetx::data
