#include "tests/ops/recurrence_case.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

struct Kind {
  bool bias = true, peepholes = true, states = false, reverse = false;
  std::string gate = "sigmoid", cell = "tanh", candidate = "tanh";
};

// One sequence and one unit at a time.
auto reference(const Kind& k) {
  return [k](const Tensors& in) -> Tensors {
    size_t next = 0;
    const Tensor x = in[next++], weight = in[next++];
    const Tensor bias = k.bias ? in[next++] : Tensor();
    const Tensor h0 = k.states ? in[next++] : Tensor(), c0 = k.states ? in[next++] : Tensor();
    const Tensor starts = in[next++], lengths = in[next];
    const int64_t h = weight.shape()[0], rows = x.shape()[0];
    Tensor hidden(f32, {rows, h}), cell(f32, {rows, h}), gates(f32, {rows, 4 * h});
    for (int64_t b = 0; b < starts.numel(); ++b) {
      const int64_t n = at<int64_t>(lengths, {b});
      for (int64_t t = 0; t < n; ++t) {
        const int64_t row = at<int64_t>(starts, {b}) + (k.reverse ? n - 1 - t : t);
        const int64_t last = k.reverse ? row + 1 : row - 1;
        const auto before = [&](const Tensor& of, const Tensor& first, int64_t j) {
          if (t > 0) return at(of, {last, j});
          return k.states ? at(first, {b, j}) : 0.0f;
        };
        const auto z = [&](int64_t gate, int64_t j) {
          float sum = at(x, {row, gate * h + j}) + (k.bias ? at(bias, {gate * h + j}) : 0.0f);
          for (int64_t i = 0; i < h; ++i)
            sum += before(hidden, h0, i) * at(weight, {i, gate * h + j});
          return sum;
        };
        for (int64_t j = 0; j < h; ++j) {
          const auto peep = [&](int64_t which) {
            return k.bias && k.peepholes ? at(bias, {(4 + which) * h + j}) : 0.0f;
          };
          const float c = before(cell, c0, j);
          const float g = activated(k.candidate, z(0, j));
          const float i = activated(k.gate, z(1, j) + peep(0) * c);
          const float f = activated(k.gate, z(2, j) + peep(1) * c);
          const float now = f * c + i * g;
          const float o = activated(k.gate, z(3, j) + peep(2) * now);
          at(cell, {row, j}) = now;
          at(hidden, {row, j}) = o * activated(k.cell, now);
          at(gates, {row, j}) = g;
          at(gates, {row, h + j}) = i;
          at(gates, {row, 2 * h + j}) = f;
          at(gates, {row, 3 * h + j}) = o;
        }
      }
    }
    return {hidden, cell, gates};
  };
}

OpCase few(const std::string& label, const Kind& k) {
  constexpr int64_t kWidth = 3;
  OpCase c{.label = label,
           .inputs = {{"x", random({kFewRows, 4 * kWidth}, 1)},
                      {"weight", random({kWidth, 4 * kWidth}, 2)}},
           .attrs = {{"reverse", k.reverse},
                     {"gate_activation", k.gate},
                     {"cell_activation", k.cell},
                     {"candidate_activation", k.candidate}},
           .constants = {"gates"},
           .unknown = {{"x", 0}, {"starts", 0}, {"lengths", 0}},
           .reference = reference(k),
           .epsilon = 1e-3};
  if (k.bias) c.inputs.push_back({"bias", random({(k.peepholes ? 7 : 4) * kWidth}, 3)});
  if (k.states) {
    c.inputs.push_back({"h0", random({5, kWidth}, 4)});
    c.inputs.push_back({"c0", random({5, kWidth}, 5)});
    c.unknown.push_back({"h0", 0});
    c.unknown.push_back({"c0", 0});
  }
  c.inputs.push_back({"starts", few_starts()});
  c.inputs.push_back({"lengths", few_lengths()});
  return c;
}

const AddCases cases("lstm", [](Cases& c) {
  c.add(few("peepholes", {}));
  c.add(few("plain", {.bias = false}));
  c.add(few("bias", {.peepholes = false}));
  c.add(few("states", {.states = true}));
  c.add(few("reverse", {.states = true, .reverse = true}));
  c.add(few("other_activations",
            {.states = true, .gate = "sigmoid", .cell = "sigmoid", .candidate = "identity"}));
  c.add(only_gradients_of(few("", {.states = true}), "states_only", {"h0", "c0"}));
  c.add(only_gradients_of(few("", {}), "weight_only", {"weight"}));
  const Ragged many(30, 0);
  c.add({.label = "many",
         .inputs = {{"x", random({many.rows, 4 * 20})},
                    {"weight", random({20, 4 * 20}, 1, -0.3f, 0.3f)},
                    {"bias", random({7 * 20}, 2)},
                    many.input("starts"),
                    many.input("lengths")},
         .attrs = {{"reverse", true}},
         .constants = {"gates"},
         .reference = reference({.reverse = true}),
         .gradient = false});  // the same code as above; differences of 24,000 numbers take minutes
  const Ragged text(64, 20);
  if (c.timed)
    c.add({.label = "perf_text",
           .inputs = {{"x", random({text.rows, 4 * 128})},
                      {"weight", random({128, 4 * 128}, 1, -0.1f, 0.1f)},
                      {"bias", random({7 * 128}, 2)},
                      text.input("starts"),
                      text.input("lengths")},
           .constants = {"gates"},
           .perf = true});
});

TEST(LstmErrors, NameTheSequence) {
  const auto bad = [](std::vector<int64_t> starts, std::vector<int64_t> lengths,
                      std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      const auto n = static_cast<int64_t>(starts.size());
      run_op("lstm", {.inputs = {{"x", random({6, 8})},
                                 {"weight", random({2, 8})},
                                 {"starts", Tensor::of<int64_t>({n}, starts)},
                                 {"lengths", Tensor::of<int64_t>({n}, lengths)}}});
    });
  };
  bad({0, 2}, {3, 2}, {"lstm", "sequence 1", "begins at row 2", "ends at 3"});
  bad({0, 4}, {4, 3}, {"sequence 1", "has 3 rows", "there are 6 rows"});
  bad({0}, {-1}, {"sequence 0"});
}

TEST(LstmErrors, NameTheShape) {
  const auto bad = [](Shape weight, Shape bias, const char* activation,
                      std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("lstm", {.inputs = {{"x", random({6, 8})},
                                 {"weight", random(weight)},
                                 {"bias", random(bias)},
                                 {"starts", Tensor::of<int64_t>({1}, {0})},
                                 {"lengths", Tensor::of<int64_t>({1}, {6})}},
                      .attrs = {{"gate_activation", activation}}});
    });
  };
  bad({2, 6}, {8}, "sigmoid", {"weight", "[H, 4 H]"});
  bad({3, 12}, {12}, "sigmoid", {"x", "[rows, 12]"});
  bad({2, 8}, {9}, "sigmoid", {"bias", "[8]", "[14] with peepholes"});
  bad({2, 8}, {8}, "gelu", {"gate_activation", "'gelu'"});
}

}  // namespace
}  // namespace fleetx::testing
