#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

float norm(const Tensor& x) {
  double sum = 0;
  for (const float v : x.data<float>()) sum += static_cast<double>(v) * static_cast<double>(v);
  return static_cast<float>(std::sqrt(sum));
}

const AddCases cases("clip_by_norm", [](Cases& c) {
  const auto add_input = [&](const std::string& label, const OpInput& x, float max_norm) {
    c.add({.label = label,
           .inputs = {x},
           .attrs = {{"max_norm", max_norm}},
           .reference = [=](const Tensors& in) -> Tensors {
             const float n = norm(in[0]);
             return {map(in[0], [&](float v) { return n > max_norm ? v * max_norm / n : v; })};
           }});
  };
  const auto add = [&](const std::string& label, const Tensor& x, float max_norm) {
    add_input(label, {"x", x}, max_norm);
  };
  add("clipped", random({3, 5}), 0.5f);
  add("short_enough", random({3, 5}), 50.0f);
  add("several_blocks", random({50000}), 1.0f);
  add("zero", filled({4}, 0.0f), 1.0f);
  // The norm is that of rows with equal ids added up.
  add_input("sparse", OpInput("x").sparse(random_rows(6, {5, 3})), 0.7f);
  add_input("sparse_short_enough", OpInput("x").sparse(random_rows(6, {5, 3})), 70.0f);
  add_input("sparse_many", OpInput("x").sparse(random_rows(3000, {200, 17})), 1.0f);
});

const AddCases scales("global_norm_scale", [](Cases& c) {
  for (const float squared : {0.0f, 0.01f, 4.0f, 100.0f})
    c.add({.label = "of_" + std::to_string(static_cast<int>(100 * squared)),
           .inputs = {{"x", Tensor::scalar(squared)}},
           .attrs = {{"max_norm", 2.0}},
           .reference = [=](const Tensors&) -> Tensors {
             return {Tensor::scalar(squared > 4.0f ? 2.0f / std::sqrt(squared) : 1.0f)};
           }});
});

}  // namespace
}  // namespace fleetx::testing
