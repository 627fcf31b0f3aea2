#include "tests/support/op_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fleetx/base/rng.h"
#include "tests/support/op_registry.h"

namespace fleetx::testing {
namespace {

constexpr uint64_t kSeed = 20201022;

template <class T>
void expect_equal(const Tensor& got, const Tensor& want, const std::string& what) {
  const auto g = got.data<T>(), w = want.data<T>();
  for (size_t i = 0; i < w.size(); ++i)
    ASSERT_EQ(g[i], w[i]) << what << ": element " << i << " of " << str(want.shape());
}

template <class T>
void expect_near(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  const auto g = got.data<T>(), w = want.data<T>();
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    const auto a = static_cast<double>(g[i]), b = static_cast<double>(w[i]);
    if (std::isnan(a) != std::isnan(b) || (std::isinf(b) && a != b)) {
      FAIL() << what << ": element " << i << ": got " << a << ", want " << b;
    }
    if (std::isnan(b) || std::isinf(b)) continue;
    const double error = std::abs(a - b) / (1.0 + std::abs(b));
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  EXPECT_LE(worst, tolerance) << what << ": element " << at << " of " << str(want.shape())
                              << ": got " << static_cast<double>(g[at]) << ", want "
                              << static_cast<double>(w[at]);
}

// body(i, 32 random bits) for i in [0, n); by blocks, because the timed cases have large inputs.
// flatten: without it a sanitized test calls the generator of another file, which is not optimised.
template <class Body>
__attribute__((flatten)) void for_each_bits(uint64_t salt, size_t n, const Body& body) {
  const Philox philox(kSeed, salt);
  for (size_t block = 0; 4 * block < n; ++block) {
    const std::array<uint32_t, 4> bits = philox.block(block);
    for (size_t i = 4 * block; i < std::min(n, 4 * block + 4); ++i) body(i, bits[i % 4]);
  }
}

}  // namespace

namespace {

using Fill = std::pair<std::string, std::function<void(Cases&)>>;

std::vector<Fill>& fills() {
  static std::vector<Fill> list;
  return list;
}

}  // namespace

AddCases::AddCases(std::string op, std::function<void(Cases&)> fill) {
  fills().emplace_back(std::move(op), std::move(fill));
}

const std::map<std::string, std::vector<OpCase>>& op_cases(bool timed) {
  static const auto all = [timed] {
    std::map<std::string, std::vector<OpCase>> cases;
    for (const auto& [op, fill] : fills()) {
      Cases more;
      more.timed = timed;
      fill(more);
      auto& list = cases[op];
      list.insert(list.end(), more.list.begin(), more.list.end());
    }
    return cases;
  }();
  return all;
}

Tensor random(Shape shape, uint64_t salt, float low, float high) {
  Tensor t(DType::kF32, std::move(shape));
  const auto values = t.data<float>();
  for_each_bits(salt, values.size(), [=](size_t i, uint32_t bits) {
    values[i] = low + (high - low) * Philox::to_unit(bits);
  });
  return t;
}

Tensor random_ints(Shape shape, int64_t low, int64_t high, uint64_t salt) {
  Tensor t(DType::kI64, std::move(shape));
  const auto values = t.data<int64_t>();
  const auto count = static_cast<uint64_t>(high - low);
  for_each_bits(salt, values.size(), [=](size_t i, uint32_t bits) {
    values[i] = low + static_cast<int64_t>(bits % count);
  });
  return t;
}

Tensor filled(Shape shape, float value) {
  Tensor t(DType::kF32, std::move(shape));
  for (float& v : t.data<float>()) v = value;
  return t;
}

SparseRows random_rows(int64_t n, const Shape& table, uint64_t salt) {
  const Tensor ids = random_ints({n}, 0, table[0], salt);
  ids.data<int64_t>().back() = ids.data<int64_t>().front();
  return {ids, random({n, table[1]}, salt), table[0]};
}

Tensor SparseRows::dense() const {
  const auto width = static_cast<size_t>(values.shape()[1]);
  Tensor out = filled({table, values.shape()[1]}, 0.0f);
  for (size_t i = 0; i < ids.data<int64_t>().size(); ++i) {
    const int64_t id = ids.data<int64_t>()[i];
    if (id == padding) continue;
    for (size_t k = 0; k < width; ++k)
      out.data<float>()[static_cast<size_t>(id) * width + k] += values.data<float>()[i * width + k];
  }
  return out;
}

Tensor map(const Tensor& x, const std::function<float(float)>& fn) {
  Tensor out(DType::kF32, x.shape());
  const auto from = x.data<float>(), to = out.data<float>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = fn(from[i]);
  return out;
}

Tensor zip(const Tensor& x, const Tensor& y, const std::function<float(float, float)>& fn) {
  Tensor out(DType::kF32, x.shape());
  const auto a = x.data<float>(), b = y.data<float>(), to = out.data<float>();
  for (size_t i = 0; i < a.size(); ++i) to[i] = fn(a[i], b[i]);
  return out;
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.shape(), want.shape())
      << what << ": got " << str(got.shape()) << ", want " << str(want.shape());
  switch (want.dtype()) {
    case DType::kF32: return expect_near<float>(got, want, tolerance, what);
    case DType::kF64: return expect_near<double>(got, want, tolerance, what);
    case DType::kF16: return expect_near<Half>(got, want, tolerance, what);
    case DType::kBF16: return expect_near<BFloat16>(got, want, tolerance, what);
    case DType::kI32: return expect_equal<int32_t>(got, want, what);
    case DType::kI64: return expect_equal<int64_t>(got, want, what);
    case DType::kU8: return expect_equal<uint8_t>(got, want, what);
    case DType::kBool: return expect_equal<bool>(got, want, what);
  }
}

}  // namespace fleetx::testing
