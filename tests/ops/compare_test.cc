#include <limits>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

// y is one row of x, or has the shape of x.
template <class T, class F>
Tensor compare(const Tensor& x, const Tensor& y, const F& f) {
  Tensor out(boolean, x.shape());
  for (size_t i = 0; i < x.data<T>().size(); ++i)
    out.data<bool>()[i] = f(x.data<T>()[i], y.data<T>()[i % y.data<T>().size()]);
  return out;
}

Tensor random_bools(const Shape& shape, uint64_t salt) {
  const Tensor ints = random_ints(shape, 0, 2, salt);
  Tensor out(boolean, shape);
  for (size_t i = 0; i < ints.data<int64_t>().size(); ++i)
    out.data<bool>()[i] = ints.data<int64_t>()[i] == 1;
  return out;
}

using Compare = std::function<bool(double, double)>;

const std::vector<AddCases> comparisons = [] {
  const std::vector<std::pair<std::string, Compare>> table{
      {"equal", [](double a, double b) { return a == b; }},
      {"not_equal", [](double a, double b) { return a != b; }},
      {"less_than", [](double a, double b) { return a < b; }},
      {"less_equal", [](double a, double b) { return a <= b; }},
      {"greater_than", [](double a, double b) { return a > b; }},
      {"greater_equal", [](double a, double b) { return a >= b; }},
  };
  std::vector<AddCases> out;
  for (const auto& [op, f] : table)
    out.emplace_back(op, [f = f](Cases& c) {
      Tensor x =
          map(random({4, 11}), [](float v) { return static_cast<float>(static_cast<int>(4 * v)); });
      x.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
      const Tensor row =
          map(random({11}, 1), [](float v) { return static_cast<float>(static_cast<int>(4 * v)); });
      c.add({.label = "row",
             .inputs = {{"x", x}, {"y", row}},
             .reference = [f](const Tensors& in) -> Tensors {
               return {compare<float>(in[0], in[1], f)};
             }});
      c.add({.label = "integers",
             .inputs = {{"x", random_ints({3, 5}, -2, 3)}, {"y", random_ints({3, 5}, -2, 3, 1)}},
             .reference = [f](const Tensors& in) -> Tensors {
               return {compare<int64_t>(in[0], in[1], f)};
             }});
      c.add({.label = "bools",
             .inputs = {{"x", random_bools({3, 5}, 1)}, {"y", random_bools({3, 5}, 2)}},
             .reference = [f](const Tensors& in) -> Tensors {
               return {compare<bool>(in[0], in[1], f)};
             }});
    });
  return out;
}();

const std::vector<AddCases> logic = [] {
  const std::vector<std::pair<std::string, std::function<bool(bool, bool)>>> table{
      {"logical_and", [](bool a, bool b) { return a && b; }},
      {"logical_or", [](bool a, bool b) { return a || b; }},
      {"logical_xor", [](bool a, bool b) { return a != b; }},
  };
  std::vector<AddCases> out;
  for (const auto& [op, f] : table)
    out.emplace_back(op, [f = f](Cases& c) {
      for (const Shape& y : {Shape{4, 11}, Shape{11}, Shape{1}})
        c.add({.label = str("y", y.rank() == 2 ? "same"
                                 : y[0] == 1   ? "scalar"
                                               : "row"),
               .inputs = {{"x", random_bools({4, 11}, 1)}, {"y", random_bools(y, 2)}},
               .reference = [f](const Tensors& in) -> Tensors {
                 return {compare<bool>(in[0], in[1], f)};
               }});
    });
  return out;
}();

const AddCases negation("logical_not", [](Cases& c) {
  c.add({.label = "values",
         .inputs = {{"x", random_bools({33}, 1)}},
         .reference = [](const Tensors& in) -> Tensors {
           Tensor out = in[0].clone();
           for (bool& v : out.data<bool>()) v = !v;
           return {out};
         }});
});

}  // namespace
}  // namespace fleetx::testing
