// Samples in columns, one column per slot: what readers of files give, what data sets keep in
// memory, and what becomes the feeds of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fleetx/tensor/tensor.h"

namespace fleetx::data {

struct Slot {
  std::string name;
  DType dtype = DType::kI64;  // or kF32
  int64_t width = -1;         // values of every sample; -1: any number from 1 on
  bool operator==(const Slot&) const = default;
};

// "dense:float32:13,ids:int64,label:int64:1"; without a width: any number of values.
std::vector<Slot> parse_slots(std::string_view text);
// kInvalidArgument for no slots, other types, widths below 1, equal names.
void check_slots(const std::vector<Slot>& slots);

// Numbers of one type that grow at the end. Unlike those of a std::vector, new ones are not zeroed
// before they are written.
class Values {
 public:
  explicit Values(DType dtype) : dtype_(dtype), element_(size_of(dtype)) {}

  DType dtype() const { return dtype_; }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * element_; }
  const char* raw() const { return memory_.get(); }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(memory_.get());
  }
  // Room for n more; they count after added(n).
  template <class T>
  T* room(size_t n) {
    if (size_ + n > capacity_) [[unlikely]]
      reserve(size_ + n);
    return reinterpret_cast<T*>(memory_.get()) + size_;
  }
  void added(size_t n) { size_ += n; }
  void append(const Values& from, size_t first, size_t count);
  void truncate(size_t n) { size_ = n; }
  void reserve(size_t n);

 private:
  DType dtype_;
  size_t element_;
  size_t size_ = 0, capacity_ = 0;  // in elements
  std::unique_ptr<char[]> memory_;
};

struct Column {
  explicit Column(const Slot& slot) : width(slot.width), values(slot.dtype) {}
  bool fixed() const { return width >= 0; }
  // Of sample i.
  size_t begin(size_t i) const {
    return fixed() ? i * static_cast<size_t>(width) : i == 0 ? 0 : static_cast<size_t>(ends[i - 1]);
  }
  size_t end(size_t i) const { return begin(i + 1); }

  int64_t width;
  Values values;              // of all samples, one after the other
  std::vector<int64_t> ends;  // where those of each sample end; empty where the width is fixed
};

struct Samples {
  explicit Samples(const std::vector<Slot>& slots);
  // Takes away what a damaged line has added to some columns.
  void drop_incomplete();
  void reserve(int64_t n);
  // Samples first to first + count of `from`, which has the same slots.
  void append(const Samples& from, int64_t first, int64_t count);

  int64_t count = 0;
  std::vector<Column> columns;
};

// The values of one slot in all samples of a batch, and how many each sample has.
struct SlotValues {
  Tensor values;   // [all values]
  Tensor lengths;  // i64 [samples]; undefined where the width is fixed
};
// Without copies of the values.
std::vector<SlotValues> to_tensors(Samples samples, const std::vector<Slot>& slots);

}  // namespace fleetx::data
