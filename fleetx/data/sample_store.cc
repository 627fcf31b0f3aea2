#include "fleetx/data/sample_store.h"

#include <algorithm>

#include "fleetx/data/order.h"

namespace fleetx::data {

SampleStore::SampleStore(std::vector<Slot> slots) : slots_(std::move(slots)) {
  check_slots(slots_);
}

size_t SampleStore::bytes() const {
  size_t n = order_ ? order_->size() * sizeof(int64_t) : 0;
  for (const Samples& block : blocks_)
    for (const Column& c : block.columns) n += c.values.bytes() + c.ends.size() * sizeof(int64_t);
  return n;
}

void SampleStore::append(const Samples& samples) {
  for (int64_t at = 0; at < samples.count;) {
    if (blocks_.empty() || blocks_.back().count == kBlock) {
      blocks_.emplace_back(slots_);
      if (blocks_.size() > 1) blocks_.back().reserve(kBlock);  // a small set stays small
    }
    const int64_t n = std::min(samples.count - at, kBlock - blocks_.back().count);
    blocks_.back().append(samples, at, n);
    at += n;
  }
  size_ += samples.count;
  order_ = nullptr;
}

void SampleStore::shuffle(uint64_t seed, int64_t round) {
  order_ = std::make_shared<const std::vector<int64_t>>(shuffled(size_, seed, round));
}

template <class T>
void SampleStore::gather_fixed(std::span<const int64_t> numbers, size_t column, Values& to) const {
  const auto width = static_cast<size_t>(slots_[column].width);
  T* out = to.room<T>(numbers.size() * width);
  for (const int64_t number : numbers) {
    const Samples& block = blocks_[static_cast<size_t>(number >> kBlockBits)];
    const T* in =
        block.columns[column].values.data<T>() + static_cast<size_t>(number & (kBlock - 1)) * width;
    if (width == 1)
      *out++ = *in;
    else
      out = std::copy_n(in, width, out);
  }
  to.added(numbers.size() * width);
}

void SampleStore::gather_any(std::span<const int64_t> numbers, size_t column, Column& to) const {
  for (const int64_t number : numbers) {
    const Column& from = blocks_[static_cast<size_t>(number >> kBlockBits)].columns[column];
    const auto row = static_cast<size_t>(number & (kBlock - 1));
    to.values.append(from.values, from.begin(row), from.end(row) - from.begin(row));
    to.ends.push_back(static_cast<int64_t>(to.values.size()));
  }
}

void SampleStore::gather(std::span<const int64_t> numbers, Samples& to) const {
  for (size_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].width < 0)
      gather_any(numbers, k, to.columns[k]);
    else if (slots_[k].dtype == DType::kI64)
      gather_fixed<int64_t>(numbers, k, to.columns[k].values);
    else
      gather_fixed<float>(numbers, k, to.columns[k].values);
  }
  to.count += static_cast<int64_t>(numbers.size());
}

}  // namespace fleetx::data
