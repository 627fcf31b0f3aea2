#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Product {
  Shape x, y, out;  // out written down by hand
  bool tx = false, ty = false;
  double alpha = 1.0;
};

// Element (batch, row, column) of an operand; `batch` runs over the leading dimensions of out.
double element(const Tensor& t, const Shape& batch, int64_t index, int64_t row, int64_t column,
               bool transposed) {
  const Shape& shape = t.shape();
  const int rank = shape.rank();
  if (transposed) std::swap(row, column);
  int64_t offset = 0, stride = shape[rank - 2] * shape[rank - 1];
  for (int d = rank - 3, b = batch.rank() - 1; d >= 0; --d, --b) {
    offset += (shape[d] == 1 ? 0 : index % batch[b]) * stride;
    index /= batch[b];
    stride *= shape[d];
  }
  return t.data<float>()[static_cast<size_t>(offset + row * shape[rank - 1] + column)];
}

Tensor reference(const Product& c, const Tensors& in) {
  Tensor x = in[0], y = in[1];
  const bool row = x.shape().rank() == 1, column = y.shape().rank() == 1;
  const bool tx = c.tx && !row, ty = c.ty && !column;
  if (row) x = x.reshaped({1, x.numel()});
  if (column) y = y.reshaped({y.numel(), 1});
  const Shape &xs = x.shape(), &ys = y.shape();
  const int64_t rows = tx ? xs.back() : xs[xs.rank() - 2];
  const int64_t inner = tx ? xs[xs.rank() - 2] : xs.back();
  const int64_t columns = ty ? ys[ys.rank() - 2] : ys.back();
  Tensor out(f32, c.out);
  Shape batch;
  const int leading = std::max(xs.rank(), ys.rank()) - 2;
  for (int d = 0; d < leading; ++d) batch.push_back(c.out[d]);
  size_t at = 0;
  for (int64_t b = 0; b < batch.numel(); ++b)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += element(x, batch, b, i, k, tx) * element(y, batch, b, k, j, ty);
        out.data<float>()[at++] = static_cast<float>(c.alpha * sum);
      }
  return out;
}

OpCase make_case(const std::string& label, const Product& c) {
  OpCase out{.label = label, .inputs = {{"x", random(c.x, 1)}, {"y", random(c.y, 2)}}};
  out.attrs = {{"transpose_x", c.tx}, {"transpose_y", c.ty}, {"alpha", c.alpha}};
  out.reference = [c](const Tensors& in) -> Tensors { return {reference(c, in)}; };
  return out;
}

const AddCases cases("matmul", [](Cases& c) {
  c.add(make_case("plain", {.x = {3, 4}, .y = {4, 5}, .out = {3, 5}}));
  c.add(make_case("transpose_x", {.x = {4, 3}, .y = {4, 5}, .out = {3, 5}, .tx = true}));
  c.add(make_case("transpose_y", {.x = {3, 4}, .y = {5, 4}, .out = {3, 5}, .ty = true}));
  c.add(make_case("transpose_both",
                  {.x = {4, 3}, .y = {5, 4}, .out = {3, 5}, .tx = true, .ty = true}));
  c.add(make_case("alpha", {.x = {3, 4}, .y = {5, 4}, .out = {3, 5}, .ty = true, .alpha = 0.125}));
  c.add(make_case("larger", {.x = {65, 70}, .y = {70, 33}, .out = {65, 33}}));
  c.add(make_case("batched", {.x = {2, 3, 4}, .y = {2, 4, 5}, .out = {2, 3, 5}}));
  c.add(make_case(
      "attention",
      {.x = {2, 3, 5, 4}, .y = {2, 3, 6, 4}, .out = {2, 3, 5, 6}, .ty = true, .alpha = 0.5}));
  c.add(make_case("batched_transpose_x",
                  {.x = {2, 3, 4, 5}, .y = {2, 3, 4, 6}, .out = {2, 3, 5, 6}, .tx = true}));
  c.add(make_case("one_y", {.x = {2, 3, 4}, .y = {4, 5}, .out = {2, 3, 5}}));
  c.add(make_case("one_y_transposed",
                  {.x = {2, 2, 3, 4}, .y = {5, 4}, .out = {2, 2, 3, 5}, .ty = true}));
  c.add(
      make_case("one_y_transpose_x", {.x = {2, 4, 3}, .y = {4, 5}, .out = {2, 3, 5}, .tx = true}));
  c.add(make_case("one_x", {.x = {3, 4}, .y = {2, 4, 5}, .out = {2, 3, 5}}));
  c.add(make_case("broadcast", {.x = {2, 1, 3, 4}, .y = {5, 4, 2}, .out = {2, 5, 3, 2}}));
  c.add(make_case("broadcast_both",
                  {.x = {1, 3, 2, 4}, .y = {2, 1, 4, 2}, .out = {2, 3, 2, 2}, .alpha = 2.0}));
  c.add(make_case("row", {.x = {4}, .y = {4, 5}, .out = {5}}));
  c.add(make_case("row_batched", {.x = {4}, .y = {2, 4, 5}, .out = {2, 5}}));
  c.add(make_case("row_transpose_y", {.x = {4}, .y = {5, 4}, .out = {5}, .ty = true}));
  c.add(make_case("column", {.x = {3, 4}, .y = {4}, .out = {3}}));
  c.add(make_case("column_batched", {.x = {2, 3, 4}, .y = {4}, .out = {2, 3}}));
  c.add(make_case("column_transpose_x", {.x = {4, 3}, .y = {4}, .out = {3}, .tx = true}));
  c.add(make_case("dot", {.x = {6}, .y = {6}, .out = {1}}));

  const auto perf = [&](const std::string& label, const Product& p) {
    if (!c.timed) return;
    c.add(make_case(label, p));
    c.list.back().perf = true;
  };
  perf("bert_ffn.perf", {.x = {1024, 768}, .y = {768, 3072}, .out = {1024, 3072}});
  perf("bert_scores.perf",
       {.x = {8, 12, 128, 64}, .y = {8, 12, 128, 64}, .out = {8, 12, 128, 128}, .ty = true});
});

TEST(Matmul, ErrorsNameWhatIsWrong) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const auto error_of = [&](const Shape& x, const Shape& y) -> std::string {
    try {
      b.op("matmul", {{"x", b.data(b.unique_name("left"), f32, x)},
                      {"y", b.data(b.unique_name("right"), f32, y)}});
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(error_of({3, 4}, {5, 6}).find("the inner dimensions must be equal"), std::string::npos);
  EXPECT_NE(error_of({2, 3, 4}, {3, 4, 5}).find("[2] and [3] do not broadcast"), std::string::npos);
  EXPECT_EQ(error_of({-1, 3, 4}, {3, 4, 5}), "");
  EXPECT_EQ(error_of({-1, 4}, {4, 5}), "");
}

}  // namespace
}  // namespace fleetx::testing
