#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

Tensor ids(Shape shape, std::vector<int64_t> values) { return Tensor::of<int64_t>(shape, values); }

Tensors taken(const Tensors& in, int axis) {
  const Shape &x = in[0].shape(), &index = in[1].shape();
  Shape shape;
  for (int d = 0; d < axis; ++d) shape.push_back(x[d]);
  for (const int64_t n : index) shape.push_back(n);
  for (int d = axis + 1; d < x.rank(); ++d) shape.push_back(x[d]);
  return {tabulate(shape, [&](const Index& i) {
    const auto first = i.begin() + axis, last = first + index.rank();
    Index from(i.begin(), first);
    from.push_back(at<int64_t>(in[1], Index(first, last)));
    from.insert(from.end(), last, i.end());
    return at(in[0], from);
  })};
}

const AddCases gather("gather", [](Cases& c) {
  const auto add = [&](const std::string& label, Shape x, Tensor index, int axis) {
    c.add({.label = label,
           .inputs = {{"x", random(x)}, {"index", index}},
           .attrs = {{"axis", axis}},
           .reference = [=](const Tensors& in) {
             return taken(in, axis < 0 ? axis + x.rank() : axis);
           }});
  };
  add("rows", {5, 3}, ids({4}, {4, 0, 4, 2}), 0);
  add("matrix_of_ids", {5, 3}, ids({2, 2}, {1, 1, 3, 0}), 0);
  add("columns", {3, 4}, ids({3}, {3, 3, 0}), -1);
  add("middle", {2, 4, 3}, ids({5}, {0, 3, 3, 1, 0}), 1);
  add("wide_rows", {40, 600}, random_ints({90}, 0, 40), 0);  // enough for two threads
  c.add({.label = "short_ids",
         .inputs = {{"x", random({5, 3})}, {"index", Tensor::of<int32_t>({3}, {2, 2, 4})}},
         .reference = [](const Tensors& in) {
           return taken({in[0], ids({3}, {2, 2, 4})}, 0);
         }});
  c.add({.label = "unknown_batch",
         .inputs = {{"x", random({5, 3})}, {"index", ids({2}, {1, 4})}},
         .unknown = {{"x", 0}, {"index", 0}},
         .reference = [](const Tensors& in) { return taken(in, 0); }});
  if (c.timed)
    c.add({.label = "perf_rows",
           .inputs = {{"x", random({30000, 64})}, {"index", random_ints({100000}, 0, 30000)}},
           .perf = true});
});

Tensors taken_nd(const Tensors& in) {
  const Shape &x = in[0].shape(), &index = in[1].shape();
  const auto k = static_cast<int>(index.back());
  Shape shape;
  for (int d = 0; d + 1 < index.rank(); ++d) shape.push_back(index[d]);
  for (int d = k; d < x.rank(); ++d) shape.push_back(x[d]);
  return {tabulate(shape, [&](const Index& i) {
    const auto middle = i.begin() + index.rank() - 1;
    Index from;
    for (int64_t d = 0; d < k; ++d) {
      Index place(i.begin(), middle);
      place.push_back(d);
      from.push_back(at<int64_t>(in[1], place));
    }
    from.insert(from.end(), middle, i.end());
    return at(in[0], from);
  })};
}

const AddCases gather_nd("gather_nd", [](Cases& c) {
  c.add({.label = "elements",
         .inputs = {{"x", random({3, 4})}, {"index", ids({3, 2}, {0, 1, 2, 3, 0, 1})}},
         .reference = taken_nd});
  c.add({.label = "rows",
         .inputs = {{"x", random({2, 3, 4})}, {"index", ids({2, 2, 2}, {0, 1, 1, 2, 1, 2, 0, 0})}},
         .reference = taken_nd});
  c.add({.label = "unknown_batch",
         .inputs = {{"x", random({3, 4})}, {"index", ids({2, 1}, {2, 0})}},
         .unknown = {{"x", 0}, {"index", 0}},
         .reference = taken_nd});
});

TEST(GatherErrors, NameIdPlaceAndSize) {
  const auto bad = [](const char* op, Tensor index, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op(op, {.inputs = {{"x", random({5, 3})}, {"index", index}}});
    });
  };
  bad("gather", ids({2, 2}, {1, 2, 7, 9}), {"gather", "index", "id 7", "[1,0]", "there are 5"});
  bad("gather", ids({1}, {-1}), {"id -1", "[0]"});
  bad("gather", random({2}), {"must be i64 or i32"});
  bad("gather_nd", ids({2, 2}, {1, 2, 0, 3}),
      {"gather_nd", "id 3", "[1,1]", "axis 1", "3 entries"});
  bad("gather_nd", ids({1, 3}, {0, 0, 0}), {"1 to 2 coordinates"});
}

}  // namespace
}  // namespace fleetx::testing
