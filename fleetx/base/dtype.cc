#include "fleetx/base/dtype.h"

#include <array>
#include <ostream>

namespace fleetx {
namespace {

struct Row {
  DType dtype;
  size_t size;
  std::string_view name;
  std::string_view long_name;
};

constexpr std::array<Row, 8> kTable{{{DType::kF32, 4, "f32", "float32"},
                                     {DType::kF64, 8, "f64", "float64"},
                                     {DType::kI32, 4, "i32", "int32"},
                                     {DType::kI64, 8, "i64", "int64"},
                                     {DType::kF16, 2, "f16", "float16"},
                                     {DType::kBF16, 2, "bf16", "bfloat16"},
                                     {DType::kU8, 1, "u8", "uint8"},
                                     {DType::kBool, 1, "bool", "boolean"}}};

const Row& row(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

}  // namespace

size_t size_of(DType dtype) { return row(dtype).size; }
std::string_view name_of(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& r : kTable)
    if (r.name == name || r.long_name == name) return r.dtype;
  return std::nullopt;
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

}  // namespace fleetx
