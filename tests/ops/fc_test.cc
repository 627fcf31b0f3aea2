#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/ir/builder.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

double activate(const std::string& act, double z) {
  if (act == "relu") return z > 0 ? z : 0;
  if (act == "gelu") return 0.5 * z * (1.0 + std::erf(z / std::sqrt(2.0)));
  if (act == "tanh") return std::tanh(z);
  if (act == "sigmoid") return 1.0 / (1.0 + std::exp(-z));
  return z;
}

OpCase make_case(const std::string& label, const Shape& x, int64_t n, int flat, bool bias,
                 const std::string& act = "") {
  const int64_t m = x.numel(0, flat), k = x.numel(flat, x.rank());
  Shape shape(std::vector<int64_t>(x.begin(), x.begin() + flat));
  shape.push_back(n);
  OpCase out{.label = label, .inputs = {{"x", random(x, 1)}, {"w", random({k, n}, 2)}}};
  if (bias) out.inputs.emplace_back("bias", random({n}, 3));
  out.attrs = {{"num_flatten_dims", flat}, {"act", act}};
  out.reference = [=](const Tensors& in) -> Tensors {
    Tensor y(f32, shape);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double z = bias ? in[2].data<float>()[static_cast<size_t>(j)] : 0.0;
        for (int64_t t = 0; t < k; ++t)
          z += static_cast<double>(in[0].data<float>()[static_cast<size_t>(i * k + t)]) *
               static_cast<double>(in[1].data<float>()[static_cast<size_t>(t * n + j)]);
        y.data<float>()[static_cast<size_t>(i * n + j)] = static_cast<float>(activate(act, z));
      }
    return {y};
  };
  if (act == "relu") {  // a small step rarely crosses the bend
    out.epsilon = 1e-3;
    out.grad_tolerance = 5e-2;
  }
  return out;
}

const AddCases cases("fc", [](Cases& c) {
  const OpCase whole = make_case("", {4, 6}, 5, 1, true, "gelu");
  for (const std::string slot : {"x", "w", "bias"})
    c.add(only_gradients_of(whole, "only_d" + slot, {slot}));
  c.add(make_case("plain", {4, 6}, 5, 1, false));
  c.add(make_case("bias", {4, 6}, 5, 1, true));
  for (const std::string act : {"relu", "gelu", "tanh", "sigmoid"}) {
    c.add(make_case(act, {4, 6}, 5, 1, true, act));
    c.add(make_case(act + "_no_bias", {3, 17}, 20, 1, false, act));
  }
  c.add(make_case("flatten_1", {2, 3, 4}, 5, 1, true));
  c.add(make_case("flatten_2", {2, 3, 4}, 5, 2, true));
  c.add(make_case("flatten_2_of_4", {2, 3, 2, 5}, 7, 2, true, "gelu"));
  c.add(make_case("one_output", {8, 10}, 1, 1, true));
  c.add(make_case("one_row", {1, 64}, 32, 1, true, "relu"));
  c.add(make_case("larger", {70, 100}, 90, 1, true));
  c.add(make_case("many_rows", {600, 20}, 37, 1, true));

  if (!c.timed) return;
  for (const auto& [label, x, n] :
       {std::tuple{"bert_ffn_in.perf", Shape{1024, 768}, int64_t{3072}},
        std::tuple{"bert_ffn_out.perf", Shape{1024, 3072}, int64_t{768}},
        std::tuple{"resnet_head.perf", Shape{16, 2048}, int64_t{1000}}}) {
    c.add(make_case(label, x, n, 1, true));
    c.list.back().perf = true;
  }
});

// Gradients of which dx has the first `columns` of k only.
OpCase narrow_grad_case(const std::string& label, const Shape& x, int64_t n, int64_t columns) {
  const int64_t k = x.back(), m = x.numel() / k;
  Shape dout = x, dx = x;
  dout[x.rank() - 1] = n;
  dx[x.rank() - 1] = columns;
  return {.label = label,
          .inputs = {{"x", random(x, 1)}, {"w", random({k, n}, 2)}, {"dout", random(dout, 3)}},
          .attrs = {{"num_flatten_dims", x.rank() - 1}, {"dx_columns", columns}},
          .outputs = {{"dx", 1}, {"dw", 1}},
          .reference = [=](const Tensors& in) -> Tensors {
            const auto value = [&](size_t i, int64_t at) {
              return static_cast<double>(in[i].data<float>()[static_cast<size_t>(at)]);
            };
            Tensor narrow(f32, dx), dw(f32, {k, n});
            for (int64_t i = 0; i < m * columns; ++i) {
              double sum = 0;
              for (int64_t j = 0; j < n; ++j)
                sum += value(2, i / columns * n + j) * value(1, i % columns * n + j);
              narrow.data<float>()[static_cast<size_t>(i)] = static_cast<float>(sum);
            }
            for (int64_t i = 0; i < k * n; ++i) {
              double sum = 0;
              for (int64_t row = 0; row < m; ++row)
                sum += value(0, row * k + i / n) * value(2, row * n + i % n);
              dw.data<float>()[static_cast<size_t>(i)] = static_cast<float>(sum);
            }
            return {narrow, dw};
          }};
}

const AddCases narrow_grad_cases("fc_grad", [](Cases& c) {
  c.add(narrow_grad_case("narrow", {4, 6}, 5, 2));
  c.add(narrow_grad_case("narrow_flatten_2", {2, 3, 4}, 5, 3));
  c.add(narrow_grad_case("narrow_many_rows", {300, 21}, 37, 13));
  c.list.back().tolerance = 3e-5;
});

TEST(FcGrad, RefusesColumnsThatXDoesNotHave) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 2, 3}), w = b.data("w", f32, {3, 5}),
                flat = b.data("flat", f32, {6, 5}), dout = b.data("dout", f32, {-1, 2, 5}),
                dflat = b.data("dflat", f32, {-1, 5});
  const auto grad = [&](int rows, int64_t columns) {
    b.op("fc_grad", {{"x", x}, {"w", rows == 1 ? flat : w}, {"dout", rows == 1 ? dflat : dout}},
         {{"num_flatten_dims", rows}, {"dx_columns", columns}},
         {{"dx", str("dx_", rows, "_", columns)}});
  };
  EXPECT_NO_THROW(grad(2, 3));
  for (const auto& [rows, columns] : {std::pair{2, 4}, {2, -1}, {1, 3}})
    expect_error(Error::Kind::kInvalidArgument, {"dx_columns", "'x'"},
                 [rows = rows, columns = columns, &grad] { grad(rows, columns); });
}

// Several layers that read one x; the reference computes them one by one.
OpCase group_case(const std::string& label, const Shape& x, int64_t n, int flat, size_t layers) {
  const OpCase one = make_case("", x, n, flat, true);
  Tensors w, bias;
  for (size_t i = 0; i < layers; ++i) {
    w.push_back(random(one.inputs[1].tensors[0].shape(), 10 + i));
    bias.push_back(random({n}, 20 + i));
  }
  return {.label = label,
          .inputs = {one.inputs[0], {"w", w}, {"bias", bias}},
          .attrs = {{"num_flatten_dims", flat}},
          .outputs = {{"out", static_cast<int>(layers)}},
          .reference = [=](const Tensors& in) -> Tensors {
            Tensors out;
            for (size_t i = 0; i < layers; ++i)
              out.push_back(one.reference({in[0], in[1 + i], in[1 + layers + i]})[0]);
            return out;
          }};
}

const AddCases group_cases("fc_group", [](Cases& c) {
  for (const size_t layers : {1, 2, 3}) c.add(group_case(str("of_", layers), {4, 6}, 5, 1, layers));
  const OpCase whole = group_case("", {2, 3, 4}, 5, 2, 2);
  for (const std::string slot : {"x", "w", "bias"})
    c.add(only_gradients_of(whole, "only_d" + slot, {slot}));
  c.add(group_case("larger", {70, 100}, 90, 1, 3));
  if (!c.timed) return;
  c.add(group_case("bert_qkv.perf", {1024, 768}, 768, 1, 3));
  c.list.back().perf = true;
});

// By the definition, in f64: dx = addend + sum of dout[i] * w[i]^T.
OpCase group_grad_case(const std::string& label, int64_t m, int64_t k, int64_t n, size_t layers) {
  Tensors w, dout;
  for (size_t i = 0; i < layers; ++i) {
    w.push_back(random({k, n}, 10 + i));
    dout.push_back(random({m, n}, 20 + i));
  }
  const int count = static_cast<int>(layers);
  return {
      .label = label,
      .inputs = {{"x", random({m, k}, 1)}, {"w", w}, {"dout", dout}, {"addend", random({m, k}, 2)}},
      .outputs = {{"dx", 1}, {"dw", count}, {"dbias", count}},
      .reference = [=](const Tensors& in) -> Tensors {
        const Tensor &x = in.front(), &addend = in.back();
        Tensors out{tabulate({m, k}, [&](const Index& i) {
          double sum = at(addend, i);
          for (size_t l = 0; l < layers; ++l)
            for (int64_t j = 0; j < n; ++j)
              sum += 1.0 * at(in[1 + layers + l], {i[0], j}) * at(in[1 + l], {i[1], j});
          return static_cast<float>(sum);
        })};
        Tensors dw, dbias;
        for (size_t l = 0; l < layers; ++l) {
          const Tensor& d = in[1 + layers + l];
          dw.push_back(tabulate({k, n}, [&](const Index& i) {
            double sum = 0;
            for (int64_t row = 0; row < m; ++row)
              sum += 1.0 * at(x, {row, i[0]}) * at(d, {row, i[1]});
            return static_cast<float>(sum);
          }));
          dbias.push_back(tabulate({n}, [&](const Index& i) {
            double sum = 0;
            for (int64_t row = 0; row < m; ++row) sum += at(d, {row, i[0]});
            return static_cast<float>(sum);
          }));
        }
        out.insert(out.end(), dw.begin(), dw.end());
        out.insert(out.end(), dbias.begin(), dbias.end());
        return out;
      }};
}

const AddCases group_grad_cases("fc_group_grad", [](Cases& c) {
  for (const size_t layers : {1, 2, 3}) c.add(group_grad_case(str("of_", layers), 7, 6, 5, layers));
  c.add(group_grad_case("larger", 300, 100, 90, 3));
  c.list.back().tolerance = 3e-5;
});

TEST(FcGroup, RefusesWhatDoesNotFitTogether) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {-1, 4}), w = b.data("w", f32, {4, 3}),
                wide = b.data("wide", f32, {4, 5}), bias = b.data("bias", f32, {3}),
                dout = b.data("dout", f32, {-1, 3}), addend = b.data("addend", f32, {-1, 3});
  using Vars = std::vector<ir::Var>;
  constexpr auto kBad = Error::Kind::kInvalidArgument;
  const auto forward = [&](const Vars& ws, const Vars& biases, const ir::Names& out) {
    b.op("fc_group", {{"x", x}, {"w", ws}, {"bias", biases}}, {}, {{"out", out}});
  };
  EXPECT_NO_THROW(forward({w, w}, {bias, bias}, {"p", "q"}));
  expect_error(kBad, {"wide", "one type"}, [&] { forward({w, wide}, {bias, bias}, {"r", "s"}); });
  expect_error(kBad, {"2 w, but 1 bias"}, [&] { forward({w, w}, {bias}, {"r", "s"}); });
  expect_error(kBad, {"2 w, but 1 out"}, [&] { forward({w, w}, {bias, bias}, {"r"}); });
  expect_error(kBad, {"'w'", "expected f32[3]"}, [&] { forward({w, w}, {bias, w}, {"r", "s"}); });
  const auto backward = [&](const Vars& douts, const ir::Var& added, const ir::Names& dw) {
    b.op("fc_group_grad", {{"x", x}, {"w", Vars{w, w}}, {"dout", douts}, {"addend", added}}, {},
         {{"dx", "dx"}, {"dw", dw}});
  };
  expect_error(kBad, {"2 w, but 1 dout"}, [&] { backward({dout}, x, {"dp", "dq"}); });
  expect_error(kBad, {"2 w, but 1 dw"}, [&] { backward({dout, dout}, x, {"dp"}); });
  expect_error(kBad, {"dout 'x'"}, [&] { backward({dout, x}, x, {"dp", "dq"}); });
  expect_error(kBad, {"addend", "one type"}, [&] { backward({dout, dout}, addend, {"dp", "dq"}); });
}

}  // namespace
}  // namespace fleetx::testing
