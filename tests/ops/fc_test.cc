#include <cmath>

#include "tests/support/op_case.h"

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

  for (const auto& [label, x, n] :
       {std::tuple{"bert_ffn_in.perf", Shape{1024, 768}, int64_t{3072}},
        std::tuple{"bert_ffn_out.perf", Shape{1024, 3072}, int64_t{768}},
        std::tuple{"resnet_head.perf", Shape{16, 2048}, int64_t{1000}}}) {
    c.add(make_case(label, x, n, 1, true));
    c.list.back().perf = true;
  }
});

}  // namespace
}  // namespace fleetx::testing
