// Dimensions of a tensor, row-major. In a Program a dimension may be unknown (-1); in a Plan all
// are known.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

namespace fleetx {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  int64_t back() const { return dims_.back(); }
  const std::vector<int64_t>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void push_back(int64_t d) { dims_.push_back(d); }

  bool known() const;
  // Product of all; 1 for a scalar []. Saturates on overflow.
  int64_t numel() const { return numel(0, rank()); }
  int64_t numel(int begin, int end) const;  // product of dims [begin, end)
  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> dims_;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);  // [32,3,224,224]

// -1 means the last axis, and so on; the caller checks the result with 0 <= axis < rank.
inline int normalize_axis(int64_t axis, int rank) {
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace fleetx
