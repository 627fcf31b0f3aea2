// Element types. The short names (f32, i64, ...) are the same in C++, program text and files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>

#include "fleetx/base/half.h"

namespace fleetx {

enum class DType : uint8_t { kF32, kF64, kI32, kI64, kF16, kBF16, kU8, kBool };

inline constexpr DType f32 = DType::kF32, f64 = DType::kF64, i32 = DType::kI32, i64 = DType::kI64,
                       f16 = DType::kF16, bf16 = DType::kBF16, u8 = DType::kU8,
                       boolean = DType::kBool;

size_t size_of(DType dtype);
std::string_view name_of(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);  // also "float32", "int64", ...
bool is_float(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

// Calls fn with a zero of the C++ type of dtype:
//
//   with_type(t, [&](auto zero) { using T = decltype(zero); ... });
template <class Fn>
decltype(auto) with_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kF32: return fn(float{});
    case DType::kF64: return fn(double{});
    case DType::kI32: return fn(int32_t{});
    case DType::kI64: return fn(int64_t{});
    case DType::kF16: return fn(Half{});
    case DType::kBF16: return fn(BFloat16{});
    case DType::kU8: return fn(uint8_t{});
    case DType::kBool: break;
  }
  return fn(bool{});
}

}  // namespace fleetx
