#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fleetx/base/threads.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

// All values that meet in each element of the result, by coordinates; then f over each set.
template <class T>
Tensor reduce(const Tensor& x, std::vector<int> dims, bool keep,
              const std::function<double(const std::vector<double>&)>& f) {
  const int rank = x.shape().rank();
  std::set<int> gone;
  for (const int d : dims) gone.insert(d < 0 ? d + rank : d);
  if (dims.empty())
    for (int d = 0; d < rank; ++d) gone.insert(d);
  Shape shape;
  for (int d = 0; d < rank; ++d) {
    if (!gone.count(d))
      shape.push_back(x.shape()[d]);
    else if (keep)
      shape.push_back(1);
  }
  if (shape.rank() == 0) shape.push_back(1);
  Tensor out(x.dtype(), shape);
  std::vector<std::vector<double>> sets(static_cast<size_t>(out.numel()));
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (!gone.count(d)) {
        at += rest % x.shape()[d] * stride;
        stride *= x.shape()[d];
      }
      rest /= x.shape()[d];
    }
    sets[static_cast<size_t>(at)].push_back(
        static_cast<double>(x.data<T>()[static_cast<size_t>(i)]));
  }
  for (size_t i = 0; i < sets.size(); ++i) out.data<T>()[i] = static_cast<T>(f(sets[i]));
  return out;
}

using Values = std::vector<double>;
using Reducer = std::function<double(const Values&)>;

double sum_of(const Values& v) {
  double s = 0;
  for (const double x : v) s += x;
  return s;
}
double product_of(const Values& v) {
  double s = 1;
  for (const double x : v) s *= x;
  return s;
}

struct Where {
  const char* label;
  Shape x;
  std::vector<int> dims;
  bool keep = false;
};

// Distinct values a tenth apart, so that a step of the differences never changes which is largest.
Tensor spaced(const Shape& shape) {
  Tensor x(f32, shape);
  const int64_t n = x.numel();
  for (int64_t i = 0; i < n; ++i)
    x.data<float>()[static_cast<size_t>(i)] =
        0.1f * static_cast<float>((i * 37) % n - n / 2) + 0.05f;
  return x;
}

const std::vector<AddCases> cases = [] {
  const std::vector<std::pair<std::string, Reducer>> table{
      {"reduce_sum", sum_of},
      {"reduce_mean", [](const Values& v) { return sum_of(v) / static_cast<double>(v.size()); }},
      {"reduce_max", [](const Values& v) { return *std::max_element(v.begin(), v.end()); }},
      {"reduce_min", [](const Values& v) { return *std::min_element(v.begin(), v.end()); }},
      {"reduce_prod", product_of},
  };
  std::vector<AddCases> out;
  for (const auto& [op, f] : table)
    out.emplace_back(op, [op = op, f = f](Cases& c) {
      const std::vector<Where> places{
          {"all", {3, 5, 7}, {}},
          {"all_kept", {3, 5}, {}, true},
          {"last", {4, 19}, {-1}},
          {"last_kept", {4, 19}, {1}, true},
          {"first", {19, 4}, {0}},
          {"middle", {3, 17, 5}, {1}},
          {"outer_and_inner", {3, 5, 7}, {0, 2}},
          {"channels", {2, 4, 3, 3}, {0, 2, 3}},
          {"ones", {1, 6, 1}, {0, 2}},
          {"wide", {3, 600}, {0}},
      };
      const bool selects = op == "reduce_max" || op == "reduce_min";
      for (const Where& w : places) {
        const Tensor x = selects               ? spaced(w.x)
                         : op == "reduce_prod" ? random(w.x, 1, 0.9f, 1.15f)
                                               : random(w.x);
        c.add({.label = w.label,
               .inputs = {{"x", x}},
               .attrs = {{"dim", w.dims}, {"keep_dim", w.keep}},
               .reference = [w, f](const Tensors& in) -> Tensors {
                 return {reduce<float>(in[0], w.dims, w.keep, f)};
               },
               .grad_tolerance = 2e-2});
      }
      c.add({.label = "integers",
             .inputs = {{"x", random_ints({3, 4}, 1, 6)}},
             .attrs = {{"dim", ir::Ints{1}}},
             .reference = [f](const Tensors& in) -> Tensors {
               return {reduce<int64_t>(in[0], {1}, false, f)};
             },
             .gradient = false});
      for (const Where& w : std::vector<Where>{{"many_last", {7, 30011}, {1}},
                                               {"many_first", {30011, 7}, {0}},
                                               {"many_all", {251, 401}, {}}})
        c.add({.label = w.label,
               .inputs = {{"x", op == "reduce_prod" ? random(w.x, 1, 0.9999f, 1.0001f)
                                                    : random(w.x, 1, 0, 1)}},
               .attrs = {{"dim", w.dims}},
               .reference = [w, f](const Tensors& in) -> Tensors {
                 return {reduce<float>(in[0], w.dims, w.keep, f)};
               },
               .gradient = false});
      for (const Where& w : std::vector<Where>{{"perf_last", {1024, 768}, {1}},
                                               {"perf_first", {1024, 768}, {0}},
                                               {"perf_all", {1 << 20}, {}},
                                               {"perf_channels", {8, 64, 28, 28}, {0, 2, 3}}})
        if (c.timed)
          c.add({.label = w.label,
                 .inputs = {{"x", random(w.x)}},
                 .attrs = {{"dim", w.dims}},
                 .reference = {},
                 .perf = true});
    });
  return out;
}();

const AddCases zeros("reduce_prod", [](Cases& c) {
  // No zero, one zero and two zeros in a row; the differences of the last row are all 0.
  c.add({.label = "zeros",
         .inputs = {{"x", Tensor::of<float>({3, 3}, {2, 3, 0.5f, 2, 0, 4, 0, 0, 5})}},
         .attrs = {{"dim", ir::Ints{1}}},
         .reference = [](const Tensors& in) -> Tensors {
           return {reduce<float>(in[0], {1}, false, product_of)};
         }});
});

const AddCases mean("mean", [](Cases& c) {
  c.add({.label = "all",
         .inputs = {{"x", random({5, 7, 3})}},
         .reference = [](const Tensors& in) -> Tensors {
           return {reduce<float>(in[0], {}, false, [](const Values& v) {
             return sum_of(v) / static_cast<double>(v.size());
           })};
         }});
});

const AddCases sum_to("sum_to", [](Cases& c) {
  const auto add = [&](const char* label, const Shape& x, const Shape& to, int axis,
                       std::vector<int> dims) {
    c.add({.label = label,
           .inputs = {{"x", random(x)}},
           .attrs = {{"shape", to}, {"axis", axis}},
           .reference = [=](const Tensors& in) -> Tensors {
             Shape shape = to;
             for (int d = 0; d < to.rank(); ++d)
               if (to[d] == -1) shape[d] = x[d + (axis < 0 ? x.rank() - to.rank() : axis)];
             return {reduce<float>(in[0], dims, true, sum_of).reshaped(shape)};
           }});
  };
  add("row", {6, 5}, {5}, -1, {0});
  add("channel", {2, 5, 3, 4}, {5}, 1, {0, 2, 3});
  add("kept_ones", {2, 5, 3}, {-1, 1, 3}, -1, {1});
  add("scalar", {4, 5}, {1}, -1, {0, 1});
});

Tensor bools(const Shape& shape, uint64_t salt, int64_t one_in) {
  const Tensor ints = random_ints(shape, 0, one_in, salt);
  Tensor out(boolean, shape);
  for (size_t i = 0; i < ints.data<int64_t>().size(); ++i)
    out.data<bool>()[i] = ints.data<int64_t>()[i] == 0;
  return out;
}

const AddCases all("reduce_all", [](Cases& c) {
  for (const auto& [label, dims] :
       std::vector<std::pair<const char*, std::vector<int>>>{{"all", {}}, {"last", {1}}})
    c.add({.label = label,
           .inputs = {{"x", bools({9, 3}, 1, 3)}},
           .attrs = {{"dim", dims}},
           .reference = [dims = dims](const Tensors& in) -> Tensors {
             return {reduce<bool>(in[0], dims, false, [](const Values& v) {
               return *std::min_element(v.begin(), v.end());
             })};
           }});
});

const AddCases any("reduce_any", [](Cases& c) {
  for (const auto& [label, dims] :
       std::vector<std::pair<const char*, std::vector<int>>>{{"all", {}}, {"first", {0}}})
    c.add({.label = label,
           .inputs = {{"x", bools({3, 40}, 1, 3)}},
           .attrs = {{"dim", dims}},
           .reference = [dims = dims](const Tensors& in) -> Tensors {
             return {reduce<bool>(in[0], dims, false, [](const Values& v) {
               return *std::max_element(v.begin(), v.end());
             })};
           }});
});

Tensor run_sum(const Tensor& x) {
  return run_op("reduce_sum", {.label = "", .inputs = {{"x", x}}, .reference = {}})[0];
}

TEST(Reduce, BitsDoNotDependOnThreads) {
  const Tensor x = random({1 << 18}, 5, 0, 1);
  const int before = num_threads();
  set_num_threads(1);
  const float one = run_sum(x).item<float>();
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(run_sum(x).item<float>(), one) << threads << " threads";
  }
  set_num_threads(before);
}

TEST(Reduce, LongSumsAreExactToTheLastBit) {
  const Tensor x = filled({3'000'000}, 0.1f);
  EXPECT_FLOAT_EQ(run_sum(x).item<float>(), static_cast<float>(3e6 * static_cast<double>(0.1f)));
}

TEST(Reduce, NanReachesTheResult) {
  Tensor x = random({100});
  x.data<float>()[57] = std::nanf("");
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"})
    EXPECT_TRUE(std::isnan(
        run_op(op, {.label = "", .inputs = {{"x", x}}, .reference = {}})[0].item<float>()))
        << op;
}

}  // namespace
}  // namespace fleetx::testing
