#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "fleetx/ops/lib/half.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

Tensors added_up(const Tensors& in) {
  Tensor out = in[0].clone();
  for (size_t i = 1; i < in.size(); ++i)
    out = zip(out, in[i], [](float a, float b) { return a + b; });
  return {out};
}

Tensor in_half(const Tensor& x, DType dtype) {
  Tensor out(dtype, x.shape());
  ops::narrow(x.data<float>().data(), dtype, out.raw(), x.shape().numel());
  return out;
}
Tensor in_f32(const Tensor& x) {
  Tensor out(f32, x.shape());
  ops::widen(x.dtype(), x.raw(), out.data<float>().data(), x.shape().numel());
  return out;
}

const AddCases cases("sum", [](Cases& c) {
  for (const int count : {1, 2, 5})
    c.add({.label = str("of_", count),
           .inputs = {{"xs",
                       [&] {
                         Tensors xs;
                         for (int i = 0; i < count; ++i)
                           xs.push_back(random({3, 41}, static_cast<uint64_t>(i)));
                         return xs;
                       }()}},
           .reference = added_up});
  // Gradients themselves: nobody differentiates them.
  SparseRows padded = random_rows(5, {6, 41}, 1);
  padded.padding = padded.ids.data<int64_t>()[0];
  c.add({.label = "sparse",
         .inputs = {OpInput("xs").sparse(random_rows(8, {6, 41})).sparse(padded)},
         .reference = added_up,
         .gradient = false});
  c.add({.label = "dense_and_sparse",
         .inputs = {OpInput("xs", random({6, 41})).sparse(random_rows(8, {6, 41})).sparse(padded)},
         .reference = added_up,
         .gradient = false});
  // Rows of one id are added up first, so that all is rounded once.
  for (const DType half : {bf16, f16})
    c.add({.label = str(half, "_and_sparse"),
           .inputs =
               {OpInput("xs", in_half(random({6, 1100}), half)).sparse(random_rows(8, {6, 1100}))},
           .reference = [half](const Tensors& in) -> Tensors {
             return {in_half(added_up({in_f32(in[0]), in[1]})[0], half)};
           },
           .tolerance = half == bf16 ? 0x1p-8 : 0x1p-11,
           .gradient = false});
  c.add({.label = "integers",
         .inputs = {{"xs", Tensors{random_ints({9}, -9, 9), random_ints({9}, -9, 9, 1)}}},
         .reference = [](const Tensors& in) -> Tensors {
           Tensor out = in[0].clone();
           for (size_t i = 0; i < 9; ++i) out.data<int64_t>()[i] += in[1].data<int64_t>()[i];
           return {out};
         },
         .gradient = false});
  if (c.timed)
    c.add({.label = "perf_2",
           .inputs = {{"xs", Tensors{random({1 << 20}), random({1 << 20}, 1)}}},
           .reference = {},
           .perf = true});
  if (c.timed)
    c.add({.label = "perf_4",
           .inputs = {{"xs", Tensors{random({1 << 20}), random({1 << 20}, 1), random({1 << 20}, 2),
                                     random({1 << 20}, 3)}}},
           .reference = {},
           .perf = true});
});

TEST(Sum, IsSparseWhereAllAre) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var ids = b.data("ids", i64, {4}), values = b.data("values", f32, {4, 3});
  const ir::Var rows = b.op("embedding_grad", {{"ids", ids}, {"dout", values}},
                            {{"sparse", true}, {"shape", Shape{6, 3}}});
  const auto sum = [&](const ir::Var& other) {
    return ir::Var(b.op("sum", {{"xs", {rows, other}}})).type();
  };
  EXPECT_EQ(sum(rows), (ir::TensorType{f32, {6, 3}, ir::VarKind::kSparseRows, 8}));
  EXPECT_EQ(sum(b.data("dense", f32, {6, 3})).kind, ir::VarKind::kDense);
  EXPECT_EQ(sum(b.data("half", bf16, {6, 3})), (ir::TensorType{bf16, {6, 3}}));
}

}  // namespace
}  // namespace fleetx::testing
