#include "tests/ops/recurrence_case.h"

namespace fleetx::testing {
namespace {

// The best of all ways to tag each sequence, tried one after the other.
auto best_way(bool with_label) {
  return [with_label](const Tensors& in) -> Tensors {
    const Tensor &x = in[0], &w = in[1], &starts = in[with_label ? 3 : 2],
                 &lengths = in[with_label ? 4 : 3];
    const int64_t tags = x.shape()[1];
    Tensor path(i64, {x.shape()[0]});
    for (int64_t b = 0; b < starts.numel(); ++b) {
      const int64_t begin = at<int64_t>(starts, {b}), n = at<int64_t>(lengths, {b});
      Index y(static_cast<size_t>(n), 0), best;
      double top = 0;
      for (bool more = n > 0; more;) {
        double sum = at(w, {0, y.front()}) + at(w, {1, y.back()});
        for (size_t t = 0; t < y.size(); ++t) {
          sum += static_cast<double>(at(x, {begin + static_cast<int64_t>(t), y[t]}));
          if (t > 0) sum += static_cast<double>(at(w, {2 + y[t - 1], y[t]}));
        }
        if (best.empty() || sum > top) {
          top = sum;
          best = y;
        }
        size_t i = 0;
        while (i < y.size() && ++y[i] == tags) y[i++] = 0;
        more = i < y.size();
      }
      for (int64_t t = 0; t < n; ++t) {
        const int64_t tag = best[static_cast<size_t>(t)];
        at<int64_t>(path, {begin + t}) = !with_label                              ? tag
                                         : at<int64_t>(in[2], {begin + t}) == tag ? 1
                                                                                  : 0;
      }
    }
    return {path};
  };
}

const AddCases cases("crf_decoding", [](Cases& c) {
  c.add({.label = "tags",
         .inputs = {{"x", random({kFewRows, 4}, 1)},
                    {"transition", random({6, 4}, 2)},
                    {"starts", few_starts()},
                    {"lengths", few_lengths()}},
         .unknown = {{"x", 0}, {"starts", 0}, {"lengths", 0}},
         .reference = best_way(false)});
  c.add({.label = "compared_with_labels",
         .inputs = {{"x", random({kFewRows, 3}, 1)},
                    {"transition", random({5, 3}, 2)},
                    {"label", random_ints({kFewRows}, 0, 3)},
                    {"starts", few_starts()},
                    {"lengths", few_lengths()}},
         .reference = best_way(true)});
});

}  // namespace
}  // namespace fleetx::testing
