#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

template <class T = float>
auto permuted(ir::Ints perm) {
  return [perm](const Tensors& in) -> Tensors {
    Shape shape;
    for (const int64_t d : perm) shape.push_back(in[0].shape()[static_cast<int>(d)]);
    return {tabulate<T>(shape, [&](const Index& i) {
      Index from(i.size());
      for (size_t d = 0; d < perm.size(); ++d) from[static_cast<size_t>(perm[d])] = i[d];
      return at<T>(in[0], from);
    })};
  };
}

const AddCases cases("transpose", [](Cases& c) {
  const auto add = [&](const std::string& label, Shape shape, ir::Ints perm) {
    c.add({.label = label,
           .inputs = {{"x", random(shape)}},
           .attrs = {{"perm", perm}},
           .reference = permuted(perm)});
  };
  add("matrix", {37, 21}, {1, 0});
  add("heads", {2, 5, 3, 8}, {0, 2, 1, 3});
  add("keys", {2, 5, 3, 20}, {0, 2, 3, 1});
  add("channels_last", {2, 3, 18, 19}, {0, 2, 3, 1});
  add("reversed", {3, 4, 5, 6}, {3, 2, 1, 0});
  add("identity", {3, 4}, {0, 1});
  add("ones", {1, 4, 1, 3}, {2, 1, 0, 3});
  add("vector", {4}, {0});
  c.add({.label = "negative_axes",
         .inputs = {{"x", random({2, 3, 4})}},
         .attrs = {{"perm", ir::Ints{-1, 0, 1}}},
         .reference = permuted({2, 0, 1})});
  c.add({.label = "unknown_batch",
         .inputs = {{"x", random({3, 2, 4})}},
         .attrs = {{"perm", ir::Ints{1, 0, 2}}},
         .unknown = {{"x", 0}, {"x", 1}},
         .reference = permuted({1, 0, 2})});
  c.add({.label = "ints",
         .inputs = {{"x", random_ints({17, 33}, 0, 1000)}},
         .attrs = {{"perm", ir::Ints{1, 0}}},
         .reference = permuted<int64_t>({1, 0}),
         .gradient = false});
  Tensor bytes(u8, {18, 35});
  for (size_t i = 0; i < bytes.data<uint8_t>().size(); ++i)
    bytes.data<uint8_t>()[i] = static_cast<uint8_t>(i);
  c.add({.label = "bytes",
         .inputs = {{"x", bytes}},
         .attrs = {{"perm", ir::Ints{1, 0}}},
         .reference = permuted<uint8_t>({1, 0}),
         .gradient = false});
  for (const auto& [label, shape, perm] : std::vector<std::tuple<std::string, Shape, ir::Ints>>{
           {"perf_heads", {32, 128, 12, 64}, {0, 2, 1, 3}},
           {"perf_keys", {32, 128, 12, 64}, {0, 2, 3, 1}},
           {"perf_matrix", {3000, 1000}, {1, 0}},
           {"perf_matrix_4k", {4096, 1024}, {1, 0}},
           {"perf_channels_last", {16, 64, 56, 56}, {0, 2, 3, 1}}})
    if (c.timed)
      c.add({.label = label,
             .inputs = {{"x", random(shape)}},
             .attrs = {{"perm", perm}},
             .perf = true});
});

TEST(TransposeErrors, NameThePermutation) {
  const auto bad = [](ir::Ints perm, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("transpose", {.inputs = {{"x", random({2, 3})}}, .attrs = {{"perm", perm}}});
    });
  };
  bad({0}, {"transpose", "[2,3]", "2 entries", "[0]"});
  bad({0, 0}, {"axis 0 twice"});
  bad({0, 2}, {"got 2"});
}

}  // namespace
}  // namespace fleetx::testing
