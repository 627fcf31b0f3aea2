// Attribute values of ops and variables: a closed set of types, so that both file forms can hold
// them.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "fleetx/base/dtype.h"
#include "fleetx/base/error.h"
#include "fleetx/base/shape.h"

namespace fleetx::ir {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;

enum class AttrType : uint8_t { kBool, kInt, kFloat, kString, kInts, kFloats, kStrings };
std::string_view name_of(AttrType type);

class Attr {
 public:
  using Value = std::variant<bool, int64_t, double, std::string, Ints, Floats, Strings>;

  // Implicit on purpose: attributes are written as {{"axis", 1}, {"alpha", 0.5}, {"act", "relu"}}.
  Attr(bool v) : value_(v) {}                                            // NOLINT
  Attr(int v) : value_(int64_t{v}) {}                                    // NOLINT
  Attr(int64_t v) : value_(v) {}                                         // NOLINT
  Attr(float v) : value_(static_cast<double>(v)) {}                      // NOLINT
  Attr(double v) : value_(v) {}                                          // NOLINT
  Attr(const char* v) : value_(std::string(v)) {}                        // NOLINT
  Attr(std::string v) : value_(std::move(v)) {}                          // NOLINT
  Attr(std::string_view v) : value_(std::string(v)) {}                   // NOLINT
  Attr(DType v) : value_(std::string(fleetx::name_of(v))) {}             // NOLINT
  Attr(const Shape& v) : value_(v.dims()) {}                             // NOLINT
  Attr(Ints v) : value_(std::move(v)) {}                                 // NOLINT
  Attr(const std::vector<int>& v) : value_(Ints(v.begin(), v.end())) {}  // NOLINT
  Attr(Floats v) : value_(std::move(v)) {}                               // NOLINT
  Attr(Strings v) : value_(std::move(v)) {}                              // NOLINT

  AttrType type() const { return static_cast<AttrType>(value_.index()); }
  const Value& value() const { return value_; }
  bool operator==(const Attr&) const = default;

  // T: bool, int, int64_t, float, double, std::string, DType, Shape, Ints, Floats, Strings.
  template <class T>
  T as() const;

 private:
  Value value_;
};

using Attrs = std::map<std::string, Attr, std::less<>>;

std::ostream& operator<<(std::ostream& out, const Attr& attr);  // as in program text

// Converts where nothing is lost (int to float, an empty list to any list); otherwise returns
// false.
bool coerce(Attr& attr, AttrType wanted);

template <class T>
T Attr::as() const {
  if constexpr (std::is_same_v<T, int>) {
    return static_cast<int>(std::get<int64_t>(value_));
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(std::get<double>(value_));
  } else if constexpr (std::is_same_v<T, Shape>) {
    return Shape(std::get<Ints>(value_));
  } else if constexpr (std::is_same_v<T, DType>) {
    const auto& name = std::get<std::string>(value_);
    const auto dtype = dtype_from_name(name);
    check_arg(dtype.has_value(), "'", name,
              "' is not a dtype; known: f32 f64 i32 i64 f16 bf16 u8 bool");
    return *dtype;
  } else {
    return std::get<T>(value_);
  }
}

}  // namespace fleetx::ir
