#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

auto found(int64_t padding) {
  return [padding](const Tensors& in) -> Tensors {
    Shape shape = in[0].shape();
    shape.push_back(in[2].shape()[1]);
    return {tabulate(shape, [&](const Index& i) {
      const int64_t id = at<int64_t>(in[0], Index(i.begin(), i.end() - 1));
      for (int64_t k = 0; k < in[1].numel() && id != padding; ++k)
        if (in[1].data<int64_t>()[k] == id) return at(in[2], {k, i.back()});
      return 0.0f;
    })};
  };
}

const AddCases cases("lookup_rows", [](Cases& c) {
  const auto add = [&](const std::string& label, Tensor ids, Tensor keys, int64_t padding) {
    const int64_t n = keys.numel();
    c.add({.label = label,
           .inputs = {{"ids", ids}, {"keys", keys}, {"rows", random({n, 3})}},
           .attrs = {{"padding_idx", padding}},
           .unknown = {{"ids", 0}},
           .reference = found(padding)});
  };
  const Tensor keys = Tensor::of<int64_t>({4}, {0, 2, 7, 1ll << 50});
  add("some_are_there", Tensor::of<int64_t>({2, 3}, {0, 1, 7, 1ll << 50, 3, -4}), keys, -1);
  add("padding", Tensor::of<int64_t>({4}, {0, 7, 2, 7}), keys, 7);
  add("one_key", Tensor::of<int64_t>({3}, {5, 4, 5}), Tensor::of<int64_t>({1}, {5}), -1);
});

TEST(LookupRowsErrors, NameTheInput) {
  expect_error(Error::Kind::kInvalidArgument, {"lookup_rows", "rows", "as many rows as"}, [] {
    run_op("lookup_rows", {.inputs = {{"ids", random_ints({2}, 0, 3)},
                                      {"keys", random_ints({4}, 0, 9)},
                                      {"rows", random({3, 2})}}});
  });
}

}  // namespace
}  // namespace fleetx::testing
