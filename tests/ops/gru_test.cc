#include "tests/ops/recurrence_case.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

struct Kind {
  bool bias = true, states = false, reverse = false, origin = false;
  std::string gate = "sigmoid", activation = "tanh";
};

// One sequence and one unit at a time.
auto reference(const Kind& k) {
  return [k](const Tensors& in) -> Tensors {
    size_t next = 0;
    const Tensor x = in[next++], weight = in[next++];
    const Tensor bias = k.bias ? in[next++] : Tensor(), h0 = k.states ? in[next++] : Tensor();
    const Tensor starts = in[next++], lengths = in[next];
    const int64_t h = weight.shape()[0], rows = x.shape()[0];
    const Tensor both = Tensor::view(f32, {h, 2 * h}, weight.raw());
    const Tensor own = Tensor::view(f32, {h, h}, weight.data<float>().data() + 2 * h * h);
    Tensor hidden(f32, {rows, h}), gates(f32, {rows, 3 * h});
    for (int64_t b = 0; b < starts.numel(); ++b) {
      const int64_t n = at<int64_t>(lengths, {b});
      for (int64_t t = 0; t < n; ++t) {
        const int64_t row = at<int64_t>(starts, {b}) + (k.reverse ? n - 1 - t : t);
        const auto before = [&](int64_t j) {
          if (t > 0) return at(hidden, {k.reverse ? row + 1 : row - 1, j});
          return k.states ? at(h0, {b, j}) : 0.0f;
        };
        const auto z = [&](int64_t j) { return at(x, {row, j}) + (k.bias ? at(bias, {j}) : 0.0f); };
        for (int64_t j = 0; j < 2 * h; ++j) {
          float sum = z(j);
          for (int64_t i = 0; i < h; ++i) sum += before(i) * at(both, {i, j});
          at(gates, {row, j}) = activated(k.gate, sum);
        }
        for (int64_t j = 0; j < h; ++j) {
          float sum = z(2 * h + j);
          for (int64_t i = 0; i < h; ++i)
            sum += at(gates, {row, h + i}) * before(i) * at(own, {i, j});
          const float c = activated(k.activation, sum), u = at(gates, {row, j});
          at(gates, {row, 2 * h + j}) = c;
          at(hidden, {row, j}) =
              k.origin ? u * before(j) + (1 - u) * c : (1 - u) * before(j) + u * c;
        }
      }
    }
    return {hidden, gates};
  };
}

OpCase few(const std::string& label, const Kind& k) {
  constexpr int64_t kWidth = 3;
  OpCase c{.label = label,
           .inputs = {{"x", random({kFewRows, 3 * kWidth}, 1)},
                      {"weight", random({kWidth, 3 * kWidth}, 2)}},
           .attrs = {{"reverse", k.reverse},
                     {"gate_activation", k.gate},
                     {"activation", k.activation},
                     {"origin", k.origin}},
           .constants = {"gates"},
           .unknown = {{"x", 0}, {"starts", 0}, {"lengths", 0}},
           .reference = reference(k),
           .epsilon = 1e-3};
  if (k.bias) c.inputs.push_back({"bias", random({3 * kWidth}, 3)});
  if (k.states) {
    c.inputs.push_back({"h0", random({5, kWidth}, 4)});
    c.unknown.push_back({"h0", 0});
  }
  c.inputs.push_back({"starts", few_starts()});
  c.inputs.push_back({"lengths", few_lengths()});
  return c;
}

const AddCases cases("gru", [](Cases& c) {
  c.add(few("bias", {}));
  c.add(few("plain", {.bias = false}));
  c.add(few("states", {.states = true}));
  c.add(few("origin", {.states = true, .origin = true}));
  c.add(few("reverse", {.states = true, .reverse = true}));
  c.add(few("other_activations", {.states = true, .activation = "identity"}));
  c.add(only_gradients_of(few("", {.states = true}), "states_only", {"h0"}));
  c.add(only_gradients_of(few("", {}), "weight_only", {"weight"}));
  const Ragged many(30, 0);
  c.add(
      {.label = "many",
       .inputs = {{"x", random({many.rows, 3 * 20})},
                  {"weight", random({20, 3 * 20}, 1, -0.3f, 0.3f)},
                  {"bias", random({3 * 20}, 2)},
                  many.input("starts"),
                  many.input("lengths")},
       .attrs = {{"reverse", true}},
       .constants = {"gates"},
       .reference = reference({.reverse = true}),
       .gradient = false});  // the same code as above; differences of so many numbers take minutes
  const Ragged text(64, 20);
  if (c.timed)
    c.add({.label = "perf_text",
           .inputs = {{"x", random({text.rows, 3 * 128})},
                      {"weight", random({128, 3 * 128}, 1, -0.1f, 0.1f)},
                      {"bias", random({3 * 128}, 2)},
                      text.input("starts"),
                      text.input("lengths")},
           .constants = {"gates"},
           .perf = true});
});

TEST(GruErrors, NameTheArgument) {
  const auto bad = [](Shape weight, int64_t length, std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("gru", {.inputs = {{"x", random({4, 6})},
                                {"weight", random(weight)},
                                {"starts", Tensor::of<int64_t>({1}, {0})},
                                {"lengths", Tensor::of<int64_t>({1}, {length})}}});
    });
  };
  bad({2, 8}, 4, {"weight", "[H, 3 H]"});
  bad({3, 9}, 4, {"x", "[rows, 9]"});
  bad({2, 6}, 5, {"gru", "sequence 0", "has 5 rows", "there are 4 rows"});
}

}  // namespace
}  // namespace fleetx::testing
