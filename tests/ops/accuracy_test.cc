#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

Tensors accuracy_of(const Tensor& x, const Tensor& label, int64_t k, int64_t ignored = -100) {
  const int64_t classes = x.shape().back();
  int32_t correct = 0, total = 0;
  for (int64_t i = 0; i < label.numel(); ++i) {
    const int64_t want = label.data<int64_t>()[static_cast<size_t>(i)];
    if (want == ignored) continue;
    ++total;
    const auto row = x.data<float>().subspan(static_cast<size_t>(i * classes));
    std::vector<size_t> order(static_cast<size_t>(classes));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return row[a] > row[b]; });
    const auto end = order.begin() + k;
    if (std::find(order.begin(), end, static_cast<size_t>(want)) != end) ++correct;
  }
  return {Tensor::scalar(static_cast<float>(correct) / static_cast<float>(total)),
          Tensor::scalar(correct), Tensor::scalar(total)};
}

// Few distinct scores, so that ties are common.
Tensor tied(Shape shape) {
  return map(random(std::move(shape)), [](float v) { return std::round(2 * v); });
}

const AddCases cases("accuracy", [](Cases& c) {
  const auto add = [&](const std::string& label, const Tensor& x, const Tensor& labels, int64_t k,
                       int64_t ignored = -100) {
    c.add({.label = label,
           .inputs = {{"x", x}, {"label", labels}},
           .attrs = {{"k", k}, {"ignore_index", ignored}},
           .reference = [=](const Tensors& in) { return accuracy_of(in[0], in[1], k, ignored); }});
  };
  add("top_1", random({200, 5}), random_ints({200, 1}, 0, 5), 1);
  add("top_3", random({200, 9}), random_ints({200}, 0, 9), 3);
  add("ties", tied({300, 20}), random_ints({300, 1}, 0, 20), 5);
  add("sequences", random({4, 6, 7}), random_ints({4, 6, 1}, 0, 7), 2);
  add("ignored", random({90, 3}), random_ints({90, 1}, 0, 3), 1, 2);
});

TEST(Accuracy, NotANumberIsNeverRight) {
  const OpCase c{.label = "",
                 .inputs = {{"x", filled({2, 3}, NAN)}, {"label", random_ints({2}, 0, 3)}}};
  EXPECT_EQ(run_op("accuracy", c)[0].item<float>(), 0.0f);
}

TEST(Accuracy, RefusesMoreThanThereAreClasses) {
  const OpCase c{.label = "",
                 .inputs = {{"x", random({2, 3})}, {"label", random_ints({2}, 0, 3)}},
                 .attrs = {{"k", 4}}};
  expect_error(Error::Kind::kInvalidArgument, {"accuracy", "classes, 3", "got 4"},
               [&] { run_op("accuracy", c); });
}

}  // namespace
}  // namespace fleetx::testing
