#include "tests/ops/recurrence_case.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

// Every way to tag a sequence, one after the other.
Tensors every_way(const Tensors& in) {
  const Tensor &x = in[0], &w = in[1], &label = in[2], &starts = in[3], &lengths = in[4];
  const int64_t tags = x.shape()[1];
  return {tabulate({starts.numel(), 1}, [&](const Index& index) {
    const int64_t begin = at<int64_t>(starts, {index[0]}), n = at<int64_t>(lengths, {index[0]});
    if (n == 0) return 0.0f;
    const auto score = [&](const Index& y) {
      double sum = at(w, {0, y.front()}) + at(w, {1, y.back()});
      for (int64_t t = 0; t < n; ++t) {
        const auto i = static_cast<size_t>(t);
        sum += static_cast<double>(at(x, {begin + t, y[i]}));
        if (t > 0) sum += static_cast<double>(at(w, {2 + y[i - 1], y[i]}));
      }
      return sum;
    };
    Index y(static_cast<size_t>(n), 0), given;
    for (int64_t t = 0; t < n; ++t) given.push_back(at<int64_t>(label, {begin + t}));
    double all = 0;
    for (;;) {
      all += std::exp(score(y) - score(given));
      size_t i = 0;
      while (i < y.size() && ++y[i] == tags) y[i++] = 0;
      if (i == y.size()) break;
    }
    return static_cast<float>(std::log(all));
  })};
}

OpCase few(const std::string& label, float scale) {
  return {.label = label,
          .inputs = {{"x", random({kFewRows, 3}, 1, -scale, scale)},
                     {"transition", random({5, 3}, 2, -scale, scale)},
                     {"label", random_ints({kFewRows}, 0, 3)},
                     {"starts", few_starts()},
                     {"lengths", few_lengths()}},
          .unknown = {{"x", 0}, {"label", 0}, {"starts", 0}, {"lengths", 0}},
          .reference = every_way,
          .epsilon = 1e-2};
}

const AddCases cases("linear_chain_crf", [](Cases& c) {
  c.add(few("few", 1));
  c.add(few("large_weights", 40));  // sums of exp(200) must not overflow
  c.list.back().tolerance = 1e-4;
  c.list.back().grad_tolerance = 5e-2;
  c.add(only_gradients_of(few("", 1), "transition_only", {"transition"}));
  const Ragged text(64, 20);
  if (c.timed)
    c.add({.label = "perf_text",
           .inputs = {{"x", random({text.rows, 60})},
                      {"transition", random({62, 60}, 1)},
                      {"label", random_ints({text.rows}, 0, 60)},
                      text.input("starts"),
                      text.input("lengths")},
           .perf = true});
});

TEST(CrfErrors, NameTheLabel) {
  const auto bad = [](Shape transition, int64_t label,
                      std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("linear_chain_crf", {.inputs = {{"x", random({2, 3})},
                                             {"transition", random(transition)},
                                             {"label", Tensor::of<int64_t>({2}, {0, label})},
                                             {"starts", Tensor::of<int64_t>({1}, {0})},
                                             {"lengths", Tensor::of<int64_t>({1}, {2})}}});
    });
  };
  bad({5, 3}, 3, {"linear_chain_crf", "label 3 in row 1", "below 3"});
  bad({3, 3}, 0, {"transition", "[5, 3]"});
}

}  // namespace
}  // namespace fleetx::testing
