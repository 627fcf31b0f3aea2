#include "fleetx/data/dataset.h"

#include <cstring>

namespace fleetx::data {

const Tensor& Batch::at(std::string_view field) const {
  for (const auto& [name, tensor] : feeds)
    if (name == field) return tensor;
  fail(Error::Kind::kInvalidArgument, str("a batch has no field '", field, "'"));
}

TensorDataset::TensorDataset(std::map<std::string, Tensor> tensors) {
  check_arg(!tensors.empty(), "a data set needs at least one tensor");
  for (auto& [name, tensor] : tensors) {
    const Shape& shape = tensor.shape();
    check_arg(tensor.defined() && shape.rank() >= 1, "data set: '", name, "' has no rows");
    if (fields_.empty()) size_ = shape[0];
    check_arg(shape[0] == size_, "data set: '", name, "' has ", shape[0], " rows, '",
              fields_.empty() ? name : fields_[0].name, "' has ", size_);
    fields_.push_back({name, tensor.dtype(), Shape({shape.begin() + 1, shape.end()})});
    tensors_.push_back(tensor.plain());
  }
}

void TensorDataset::read(const SampleId& id, std::span<void* const> out) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    const size_t bytes = static_cast<size_t>(fields_[i].shape.numel()) * size_of(fields_[i].dtype);
    const auto* rows = static_cast<const char*>(tensors_[i].raw());
    std::memcpy(out[i], rows + static_cast<size_t>(id.index) * bytes, bytes);
  }
}

}  // namespace fleetx::data
