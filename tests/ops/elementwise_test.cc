#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/ir/builder.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

// Index arithmetic written without regard to speed: for every element of out, the elements of x and
// y by their coordinates. y starts at dimension `axis` of x, or both end together (-1).
template <class T, class F>
Tensor broadcast(const Tensor& x, const Tensor& y, int axis, const F& f) {
  const int rank = std::max(x.shape().rank(), y.shape().rank());
  const auto dim = [&](const Tensor& t, int d, int start) -> int64_t {
    return d < start || d - start >= t.shape().rank() ? 1 : t.shape()[d - start];
  };
  const int x_start = rank - x.shape().rank();
  const int y_start = axis < 0 ? rank - y.shape().rank() : axis;
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(std::max(dim(x, d, x_start), dim(y, d, y_start)));
  Tensor out(x.dtype(), shape);
  for (int64_t i = 0; i < out.numel(); ++i) {
    int64_t rest = i, xi = 0, yi = 0, x_stride = 1, y_stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t at = rest % shape[d], xd = dim(x, d, x_start), yd = dim(y, d, y_start);
      xi += xd == 1 ? 0 : at * x_stride;
      yi += yd == 1 ? 0 : at * y_stride;
      x_stride *= xd;
      y_stride *= yd;
      rest /= shape[d];
    }
    out.data<T>()[static_cast<size_t>(i)] = static_cast<T>(
        f(x.data<T>()[static_cast<size_t>(xi)], y.data<T>()[static_cast<size_t>(yi)]));
  }
  return out;
}

double floor_mod(double x, double y) { return x - y * std::floor(x / y); }

struct Binary {
  std::string op;
  std::function<double(double, double)> f;
  float low, high;  // of both inputs, chosen so that they are not equal too often
  bool gradient = true;
};

const std::vector<Binary>& table() {
  static const std::vector<Binary> list{
      {"elementwise_add", [](double x, double y) { return x + y; }, -1, 1},
      {"elementwise_sub", [](double x, double y) { return x - y; }, -1, 1},
      {"elementwise_mul", [](double x, double y) { return x * y; }, -1, 1},
      {"elementwise_div", [](double x, double y) { return x / y; }, 0.5f, 2},
      {"elementwise_max", [](double x, double y) { return std::max(x, y); }, -1, 1},
      {"elementwise_min", [](double x, double y) { return std::min(x, y); }, -1, 1},
      {"elementwise_pow", [](double x, double y) { return std::pow(x, y); }, 0.5f, 2},
      // Steps: no gradient.
      {"elementwise_mod", floor_mod, 0.5f, 5, false},
      {"elementwise_floordiv", [](double x, double y) { return std::floor(x / y); }, 0.5f, 5,
       false},
  };
  return list;
}

struct Shapes {
  const char* label;
  Shape x, y;
  int axis;
};

void add_cases(Cases& c, const Binary& b) {
  const std::vector<Shapes> shapes{
      {"same", {3, 17}, {3, 17}, -1},
      {"scalar", {3, 17}, {1}, -1},
      {"row", {5, 19}, {19}, -1},
      {"channel", {2, 5, 3, 4}, {5}, 1},
      {"channel_with_ones", {2, 5, 3, 4}, {5, 1, 1}, -1},
      {"first_dims", {3, 4, 5}, {3, 4}, 0},
      {"column", {4, 1}, {4, 7}, -1},
      {"both_ways", {3, 1, 5}, {4, 1}, -1},
      {"x_smaller", {6}, {2, 3, 6}, -1},
      {"middle_ones", {2, 3, 4, 5}, {2, 1, 4, 1}, -1},
  };
  for (const Shapes& s : shapes) {
    Tensor x = random(s.x, 1, b.low, b.high), y = random(s.y, 2, b.low, b.high);
    // No kink in reach of the differences: max and min have one where x = y.
    for (float& v : x.data<float>()) v = std::floor(v * 10) / 10 + 0.02f;
    for (float& v : y.data<float>()) v = std::floor(v * 10) / 10 + 0.07f;
    c.add({.label = s.label,
           .inputs = {{"x", x}, {"y", y}},
           .attrs = {{"axis", s.axis}},
           .reference = [f = b.f, axis = s.axis](const Tensors& in) -> Tensors {
             return {broadcast<float>(in[0], in[1], axis, f)};
           },
           .grad_tolerance = 2e-2,
           .gradient = b.gradient});
  }
  c.add(
      {.label = "unknown_beside_known",
       .inputs = {{"x", random({4, 3}, 1, b.low, b.high)}, {"y", random({4, 3}, 2, b.low, b.high)}},
       .unknown = {{"x", 0}},
       .reference = [f = b.f](const Tensors& in) -> Tensors {
         return {broadcast<float>(in[0], in[1], -1, f)};
       },
       .gradient = false});
  Tensor divisor = random_ints({2, 9}, -4, 5, 2);
  for (int64_t& v : divisor.data<int64_t>()) v = v == 0 ? 5 : v;
  c.add({.label = "integers",
         .inputs = {{"x", random_ints({2, 9}, 1, 7)}, {"y", divisor}},
         .reference = [f = b.f](const Tensors& in) -> Tensors {
           return {broadcast<int64_t>(in[0], in[1], -1, f)};
         },
         .gradient = false});
  c.add({.label = "many",
         .inputs = {{"x", random({300, 131}, 3, b.low, b.high)},
                    {"y", random({131}, 4, b.low, b.high)}},
         .reference = [f = b.f](const Tensors& in) -> Tensors {
           return {broadcast<float>(in[0], in[1], -1, f)};
         },
         .gradient = false});
  if (c.timed)
    c.add({.label = "perf_same",
           .inputs = {{"x", random({1 << 20}, 3, b.low, b.high)},
                      {"y", random({1 << 20}, 4, b.low, b.high)}},
           .reference = {},
           .perf = true});
  if (c.timed)
    c.add({.label = "perf_row",
           .inputs = {{"x", random({1024, 768}, 3, b.low, b.high)},
                      {"y", random({768}, 4, b.low, b.high)}},
           .reference = {},
           .perf = true});
  if (c.timed)
    c.add({.label = "perf_channel",
           .inputs = {{"x", random({8, 64, 28, 28}, 3, b.low, b.high)},
                      {"y", random({64}, 4, b.low, b.high)}},
           .attrs = {{"axis", 1}},
           .reference = {},
           .perf = true});
}

const std::vector<AddCases> cases = [] {
  std::vector<AddCases> out;
  for (const Binary& b : table()) out.emplace_back(b.op, [b](Cases& c) { add_cases(c, b); });
  return out;
}();

const AddCases with_relu("elementwise_add", [](Cases& c) {
  Tensor x = random({4, 9}), y = random({9}, 1);
  for (float& v : x.data<float>()) v = std::floor(v * 10) / 10;
  for (float& v : y.data<float>()) v = std::floor(v * 10) / 10 + 0.05f;
  c.add({.label = "relu",
         .inputs = {{"x", x}, {"y", y}},
         .attrs = {{"act", "relu"}},
         .reference = [](const Tensors& in) -> Tensors {
           return {broadcast<float>(in[0], in[1], -1,
                                    [](float a, float b) { return std::max(a + b, 0.0f); })};
         }});
});

Tensor run_ints(const std::string& op, const std::vector<int64_t>& x,
                const std::vector<int64_t>& y) {
  const auto n = static_cast<int64_t>(x.size());
  return run_op(op,
                {.label = "",
                 .inputs = {{"x", Tensor::of<int64_t>({n}, x)}, {"y", Tensor::of<int64_t>({n}, y)}},
                 .reference = {}})[0];
}

TEST(Elementwise, IntegerDivisionNeverTraps) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> x{7, -7, 7, kLowest, 5}, y{2, 2, -2, -1, 0};
  const auto expect = [&](const std::string& op, const std::vector<int64_t>& want) {
    const Tensor got = run_ints(op, x, y);
    EXPECT_EQ(std::vector<int64_t>(got.data<int64_t>().begin(), got.data<int64_t>().end()), want)
        << op;
  };
  expect("elementwise_div", {3, -3, -3, kLowest, 0});
  expect("elementwise_floordiv", {3, -4, -4, kLowest, 0});
  expect("elementwise_mod", {1, 1, -1, 0, 0});
}

TEST(Elementwise, NanWinsOverMaxAndMin) {
  const float nan = std::nanf("");
  for (const char* op : {"elementwise_max", "elementwise_min"}) {
    const Tensor got = run_op(op, {.label = "",
                                   .inputs = {{"x", Tensor::of<float>({3}, {nan, 1, nan})},
                                              {"y", Tensor::of<float>({3}, {1, nan, nan})}},
                                   .reference = {}})[0];
    for (const float v : got.data<float>()) EXPECT_TRUE(std::isnan(v)) << op;
  }
}

void expect_error(const Shape& x, const Shape& y, int axis, const std::string& part) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var a = b.data("a", f32, x), c = b.data("c", f32, y);
  try {
    b.op("elementwise_add", {{"x", a}, {"y", c}}, {{"axis", axis}});
    FAIL() << "no error for " << str(x, " ", y);
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Elementwise, AnUnknownLengthTakesTheKnownOneBesideIt) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 32}), y = b.data("y", f32, {128, 32});
  const auto shape_of = [&](const char* op, const ir::Var& left, const ir::Var& right) {
    const ir::Var out = b.op(op, {{"x", left}, {"y", right}});
    return out.shape();
  };
  EXPECT_EQ(shape_of("elementwise_add", x, y), (Shape{128, 32}));
  EXPECT_EQ(shape_of("elementwise_add", y, x), (Shape{128, 32}));
  EXPECT_EQ(shape_of("less_than", x, y), (Shape{128, 32}));
  const ir::Var one = b.data("one", f32, {1, 32});
  EXPECT_EQ(shape_of("elementwise_add", x, one), (Shape{-1, 32}));
  EXPECT_EQ(shape_of("elementwise_add", one, x), (Shape{-1, 32}));
}

TEST(Elementwise, ShapesThatDoNotFitAreNamed) {
  expect_error({-1, 3}, {4}, -1, "y 'c' is f32[4]; they do not broadcast");
  expect_error({2, 3}, {3}, 0, "they do not broadcast with axis=0");
  expect_error({2, 3}, {3}, 5, "axis is 5");
}

TEST(Elementwise, UnknownBatchStaysUnknown) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 3, 4}), y = b.data("y", f32, {3});
  const ir::Var out = b.op("elementwise_add", {{"x", x}, {"y", y}}, {{"axis", 1}});
  EXPECT_EQ(out.shape(), (Shape{-1, 3, 4}));
}

}  // namespace
}  // namespace fleetx::testing
