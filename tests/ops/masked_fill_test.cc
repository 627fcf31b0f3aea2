#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

Tensor every_third(Shape shape) {
  int64_t count = 0;
  return tabulate<bool>(shape, [&](const Index&) { return count++ % 3 == 0; });
}

template <class T = float>
auto hidden(T value) {
  return [value](const Tensors& in) -> Tensors {
    const Shape& mask = in[1].shape();
    return {tabulate<T>(in[0].shape(), [&](const Index& i) {
      Index place(i.end() - mask.rank(), i.end());
      for (int d = 0; d < mask.rank(); ++d) place[static_cast<size_t>(d)] %= mask[d];
      return at<bool>(in[1], place) ? value : at<T>(in[0], i);
    })};
  };
}

const AddCases cases("masked_fill", [](Cases& c) {
  const auto add = [&](const std::string& label, Shape x, Shape mask) {
    c.add({.label = label,
           .inputs = {{"x", random(x)}, {"mask", every_third(mask)}},
           .attrs = {{"value", -9.0}},
           .reference = hidden(-9.0f)});
  };
  add("same_shape", {3, 5}, {3, 5});
  add("attention", {2, 3, 4, 4}, {2, 1, 1, 4});
  add("fewer_dimensions", {2, 3, 4}, {4});
  add("column", {4, 5}, {4, 1});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({7}, 0, 9)}, {"mask", every_third({7})}},
         .attrs = {{"value", 100}},
         .reference = hidden<int64_t>(100),
         .gradient = false});
});

TEST(MaskedFillErrors, NameTheMask) {
  const auto bad = [](Tensor mask, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("masked_fill", {.inputs = {{"x", random({2, 3})}, {"mask", mask}}});
    });
  };
  bad(every_third({3, 2}), {"masked_fill", "mask", "[3,2]", "[2,3]"});
  bad(random({2, 3}), {"must be bool"});
}

}  // namespace
}  // namespace fleetx::testing
