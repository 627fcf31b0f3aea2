#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

void add(const std::string& op, const std::string& label, const Tensor& x, const Tensor& y,
         const std::function<double(double, double)>& formula, const ir::Attrs& attrs = {}) {
  const AddCases cases(op, [=](Cases& c) {
    OpInput labels("label", y);
    if (attrs.contains("ignore_index")) labels.no_grad();  // it jumps at the ignored value
    c.add({.label = label,
           .inputs = {{"x", x}, labels},
           .attrs = attrs,
           .reference = [=](const Tensors& in) -> Tensors {
             return {zip(in[0], in[1],
                         [&](float a, float b) { return static_cast<float>(formula(a, b)); })};
           },
           .epsilon = 1e-3});
  });
}

double sigmoid_entropy(double x, double y) {
  const double p = 1 / (1 + std::exp(-x));
  return -y * std::log(p) - (1 - y) * std::log(1 - p);
}

const bool added = [] {
  const Tensor a = random({5, 9}, 1), b = random({5, 9}, 2);
  add("mse_loss", "pairs", a, b, [](double x, double y) { return (x - y) * (x - y); });
  add("mse_loss", "large", random({40000}, 1), random({40000}, 2),
      [](double x, double y) { return (x - y) * (x - y); });
  add("l1_loss", "pairs", a, b, [](double x, double y) { return std::abs(x - y); });
  for (const double delta : {1.0, 0.4})
    add("smooth_l1_loss", delta == 1.0 ? "default" : "delta", a, b,
        [delta](double x, double y) {
          const double d = std::abs(x - y);
          return d < delta ? d * d / 2 : delta * d - delta * delta / 2;
        },
        {{"delta", delta}});
  const Tensor p = random({5, 9}, 3, 0.2f, 0.9f), q = random({5, 9}, 4, 0.1f, 1.0f);
  add("log_loss", "probabilities", p, q, [](double x, double y) {
    return -y * std::log(x + 1e-4) - (1 - y) * std::log(1 - x + 1e-4);
  });
  add("kldiv_loss", "log_probabilities", a, q,
      [](double x, double y) { return y * (std::log(y) - x); });
  add("kldiv_loss", "no_mass", a, filled({5, 9}, -0.5f), [](double, double) { return 0.0; });

  Tensor labels = random({4, 6}, 5, 0.0f, 1.0f);
  add("sigmoid_cross_entropy", "logits", random({4, 6}, 6, -8.0f, 8.0f), labels, sigmoid_entropy);
  for (size_t i = 0; i < 24; i += 4) labels.data<float>()[i] = -1.0f;
  for (const bool normalize : {false, true})
    add("sigmoid_cross_entropy", normalize ? "normalized" : "ignored",
        random({4, 6}, 6, -4.0f, 4.0f), labels,
        [normalize](double x, double y) {
          return y == -1.0 ? 0.0 : sigmoid_entropy(x, y) / (normalize ? 18.0 : 1.0);
        },
        {{"ignore_index", -1}, {"normalize", normalize}});
  return true;
}();

TEST(SigmoidCrossEntropy, LargeLogits) {
  EXPECT_TRUE(added);
  const OpCase c{.label = "",
                 .inputs = {{"x", Tensor::of<float>({3}, {-200.0f, 200.0f, 0.0f})},
                            {"label", Tensor::of<float>({3}, {1.0f, 1.0f, 0.5f})}}};
  const Tensor out = run_op("sigmoid_cross_entropy", c)[0];
  EXPECT_FLOAT_EQ(out.data<float>()[0], 200.0f);
  EXPECT_FLOAT_EQ(out.data<float>()[1], 0.0f);
  EXPECT_FLOAT_EQ(out.data<float>()[2], std::log(2.0f));
}

}  // namespace
}  // namespace fleetx::testing
