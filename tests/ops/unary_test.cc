#include <cmath>
#include <limits>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

using Function = std::function<double(double)>;

struct Unary {
  std::string op;
  Function f;
  float low, high;
  std::vector<float> kinks = {};  // gradients are not tested next to these
  ir::Attrs attrs = {};
  bool integers = false;
};

Tensor keep_away(Tensor x, const std::vector<float>& kinks) {
  for (float& v : x.data<float>())
    for (const float kink : kinks)
      if (std::fabs(v - kink) < 0.03f) v = kink + 0.05f;
  return x;
}

template <class T>
Tensor apply(const Tensor& x, const Function& f) {
  Tensor out = x.clone();
  for (T& v : out.data<T>()) v = static_cast<T>(f(static_cast<double>(v)));
  return out;
}

const std::vector<Unary>& table() {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto clip = [](double x, double low, double high) {
    return std::isnan(x) ? x : std::min(std::max(x, low), high);
  };
  static const std::vector<Unary> list{
      {"relu", [](double x) { return x < 0 ? 0 : x; }, -2, 2, {0}, {}, true},
      {"relu6", [=](double x) { return clip(x, 0, 6); }, -3, 9, {0, 6}},
      {"leaky_relu", [](double x) { return x < 0 ? 0.1 * x : x; }, -2, 2, {0}, {{"alpha", 0.1}}},
      {"elu",
       [](double x) { return x < 0 ? 1.5 * std::expm1(x) : x; },
       -4,
       2,
       {0},
       {{"alpha", 1.5}}},
      {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, -5, 5},
      {"tanh", [](double x) { return std::tanh(x); }, -3, 3},
      {"sigmoid", sigmoid, -8, 8},
      {"swish", [=](double x) { return x * sigmoid(x); }, -6, 6},
      {"softplus", [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }, -6, 6},
      {"hard_sigmoid", [=](double x) { return clip(0.2 * x + 0.5, 0, 1); }, -4, 4, {-2.5, 2.5}},
      {"hard_swish", [=](double x) { return x * clip(x + 3, 0, 6) / 6; }, -5, 5, {-3, 3}},
      {"exp", [](double x) { return std::exp(x); }, -3, 3},
      {"log", [](double x) { return std::log(x); }, 0.3f, 4},
      {"sqrt", [](double x) { return std::sqrt(x); }, 0.3f, 4},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.5f, 4},
      {"reciprocal", [](double x) { return 1 / x; }, 0.5f, 4},
      {"square", [](double x) { return x * x; }, -3, 3, {}, {}, true},
      {"abs", [](double x) { return std::fabs(x); }, -3, 3, {0}, {}, true},
      {"sin", [](double x) { return std::sin(x); }, -9, 9},
      {"cos", [](double x) { return std::cos(x); }, -9, 9},
      {"erf", [](double x) { return std::erf(x); }, -3, 3},
      {"asin", [](double x) { return std::asin(x); }, -0.9f, 0.9f},
      {"acos", [](double x) { return std::acos(x); }, -0.9f, 0.9f},
      {"atan", [](double x) { return std::atan(x); }, -5, 5},
      {"pow", [](double x) { return std::pow(x, 2.5); }, 0.3f, 2, {}, {{"factor", 2.5}}},
      {"clip",
       [=](double x) { return clip(x, -1, 2); },
       -4,
       4,
       {-1, 2},
       {{"min", -1}, {"max", 2}},
       true},
      {"sign", [](double x) { return x > 0   ? 1
                                     : x < 0 ? -1
                                             : x; }, -2, 2, {0}},
      {"floor", [](double x) { return std::floor(x); }, -3, 3, {-3, -2, -1, 0, 1, 2, 3}},
      {"ceil", [](double x) { return std::ceil(x); }, -3, 3, {-3, -2, -1, 0, 1, 2, 3}},
      {"trunc", [](double x) { return std::trunc(x); }, -3, 3, {-3, -2, -1, 0, 1, 2, 3}},
      {"round", [](double x) { return std::round(x); }, -3, 3, {-2.5, -1.5, -.5, .5, 1.5, 2.5}},
  };
  return list;
}

void add_cases(Cases& c, const Unary& u) {
  const auto reference = [f = u.f](const Tensors& in) -> Tensors {
    return {apply<float>(in[0], f)};
  };
  c.add({.label = "values",
         .inputs = {{"x", keep_away(random({3, 37}, 1, u.low, u.high), u.kinks)}},
         .attrs = u.attrs,
         .reference = reference});
  c.add({.label = "many",  // more than one thread's share
         .inputs = {{"x", random({40000}, 2, u.low, u.high)}},
         .attrs = u.attrs,
         .reference = reference,
         .gradient = false});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  if (u.op != "gelu" && u.op != "swish" && u.op != "hard_swish")  // inf * 0 at the lower end
    c.add(
        {.label = "nan_and_infinity",
         .inputs = {{"x", Tensor::of<float>({6}, {nan, -nan, infinity, -infinity, 0.0f, 200.0f})}},
         .attrs = u.attrs,
         .reference = reference,
         .gradient = false});
  Tensor wide({f64, {23}});
  const Tensor narrow = random({23}, 3, u.low, u.high);
  for (size_t i = 0; i < 23; ++i)
    wide.data<double>()[i] = static_cast<double>(narrow.data<float>()[i]);
  c.add({.label = "f64",
         .inputs = {{"x", wide}},
         .attrs = u.attrs,
         .reference = [f = u.f](const Tensors& in) -> Tensors { return {apply<double>(in[0], f)}; },
         .tolerance = 1e-12,
         .gradient = false});
  if (u.integers)
    c.add({.label = "integers",
           .inputs = {{"x", random_ints({31}, -5, 6)}},
           .attrs = u.attrs,
           .reference = [f = u.f](const Tensors& in) -> Tensors {
             return {apply<int64_t>(in[0], f)};
           },
           .gradient = false});
  if (c.timed)
    c.add({.label = "perf",
           .inputs = {{"x", random({1 << 20}, 4, u.low, u.high)}},
           .attrs = u.attrs,
           .reference = reference,
           .perf = true});
}

const std::vector<AddCases> cases = [] {
  std::vector<AddCases> out;
  for (const Unary& u : table()) out.emplace_back(u.op, [u](Cases& c) { add_cases(c, u); });
  return out;
}();

const AddCases more("gelu", [](Cases& c) {
  c.add({.label = "approximate",
         .inputs = {{"x", random({3, 37}, 1, -5, 5)}},
         .attrs = {{"approximate", true}},
         .reference = [](const Tensors& in) -> Tensors {
           return {apply<float>(in[0], [](double x) {
             const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
             return 0.5 * x * (1 + std::tanh(inner));
           })};
         }});
});

const AddCases far("clip", [](Cases& c) {
  c.add({.label = "bounds_beyond_integers",
         .inputs = {{"x", random_ints({9}, -5, 6)}},
         .attrs = {{"min", -1e30}, {"max", 1e30}},
         .reference = [](const Tensors& in) -> Tensors { return {in[0]}; },
         .gradient = false});
});

}  // namespace
}  // namespace fleetx::testing
