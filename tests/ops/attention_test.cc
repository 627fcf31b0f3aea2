#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fleetx/ir/builder.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Sizes {
  int64_t batch, heads, queries, keys, d, e;
  bool causal = false;
};

double at(const Tensor& t, int64_t i) { return t.data<float>()[static_cast<size_t>(i)]; }

// The offset of the mask's row for a query; dimensions of 1 broadcast.
int64_t mask_offset(const Shape& shape, std::vector<int64_t> index) {
  int64_t offset = 0;
  for (int d = 0; d < shape.rank() - 1; ++d) {
    const int64_t i = index[static_cast<size_t>(d + 4 - shape.rank())];
    offset = offset * shape[d] + (shape[d] == 1 ? 0 : i);
  }
  return offset * shape.back();
}

Tensors reference(const Sizes& s, double scale, const Tensors& in) {
  Tensor out(f32, {s.batch, s.queries, s.heads * s.e});
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        std::vector<double> weights;
        double sum = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          double score = 0;
          for (int64_t t = 0; t < s.d; ++t)
            score += at(in[0], ((b * s.queries + i) * s.heads + h) * s.d + t) *
                     at(in[1], ((b * s.keys + j) * s.heads + h) * s.d + t);
          score *= scale;
          if (in.size() > 3) score += at(in[3], mask_offset(in[3].shape(), {b, h, i, 0}) + j);
          weights.push_back(s.causal && j > i + s.keys - s.queries ? 0 : std::exp(score));
          sum += weights.back();
        }
        for (int64_t t = 0; t < s.e; ++t) {
          double value = 0;
          for (int64_t j = 0; j < s.keys; ++j)
            value += weights[static_cast<size_t>(j)] / sum *
                     at(in[2], ((b * s.keys + j) * s.heads + h) * s.e + t);
          out.data<float>()[static_cast<size_t>(((b * s.queries + i) * s.heads + h) * s.e + t)] =
              static_cast<float>(value);
        }
      }
  return {out};
}

OpCase make_case(const std::string& label, const Sizes& s, const Shape& mask = {}) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.d));
  OpCase out{.label = label,
             .inputs = {{"q", random({s.batch, s.queries, s.heads * s.d}, 1)},
                        {"k", random({s.batch, s.keys, s.heads * s.d}, 2)},
                        {"v", random({s.batch, s.keys, s.heads * s.e}, 3)}}};
  if (mask.rank() > 0) out.inputs.emplace_back("mask", random(mask, 4, -2.0f, 2.0f));
  out.attrs = {{"heads", s.heads}, {"scale", scale}, {"causal", s.causal}};
  out.reference = [=](const Tensors& in) { return reference(s, scale, in); };
  return out;
}

// Rows [first, first + n) of x [1, rows, width].
Tensor rows_of(const Tensor& x, int64_t first, int64_t n) {
  const int64_t width = x.shape()[2];
  Tensor out(f32, {1, n, width});
  std::copy_n(x.data<float>().begin() + first * width, n * width, out.data<float>().begin());
  return out;
}

// Each sequence by itself; the rows that are left over are 0.
Tensors packed_reference(const Sizes& s, double scale, const Tensors& in) {
  Tensor out(f32, {1, s.queries, s.heads * s.e});
  int64_t query = 0, key = 0;
  for (int64_t i = 0; i < in[3].numel(); ++i) {
    const int64_t queries = in[3].data<int64_t>()[static_cast<size_t>(i)],
                  keys = in[4].data<int64_t>()[static_cast<size_t>(i)];
    Sizes one = s;
    one.queries = queries, one.keys = keys;
    const Tensor part = reference(
        one, scale,
        {rows_of(in[0], query, queries), rows_of(in[1], key, keys), rows_of(in[2], key, keys)})[0];
    std::copy_n(part.data<float>().begin(), part.numel(),
                out.data<float>().begin() + query * s.heads * s.e);
    query += queries, key += keys;
  }
  return {out};
}

Tensor lengths(const std::vector<int64_t>& values) {
  Tensor out(i64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), out.data<int64_t>().begin());
  return out;
}

OpCase packed_case(const std::string& label, const Sizes& s, const std::vector<int64_t>& queries,
                   const std::vector<int64_t>& keys) {
  OpCase out = make_case(label, s);
  const double scale = out.attrs.at("scale").as<double>();
  out.inputs.emplace_back("q_lengths", lengths(queries));
  out.inputs.emplace_back("k_lengths", lengths(keys));
  out.reference = [=](const Tensors& in) { return packed_reference(s, scale, in); };
  return out;
}

const AddCases cases("attention", [](Cases& c) {
  const Sizes small{2, 3, 4, 5, 6, 7};
  for (const std::string slot : {"q", "k", "v", "mask"})
    c.add(only_gradients_of(make_case("", small, {2, 3, 4, 5}), "only_d" + slot, {slot}));
  c.add(make_case("plain", small));
  c.add(make_case("one_head", {2, 1, 3, 3, 8, 8}));
  c.add(make_case("one_key", {2, 2, 3, 1, 4, 4}));
  c.add(make_case("full_mask", small, {2, 3, 4, 5}));
  c.add(make_case("padding_mask", small, {2, 1, 1, 5}));
  c.add(make_case("head_mask", small, {1, 3, 4, 5}));
  c.add(make_case("matrix_mask", small, {4, 5}));
  c.add(make_case("vector_mask", small, {5}));
  const Sizes causal{2, 3, 4, 6, 6, 7, true};
  c.add(make_case("causal", causal));
  c.add(make_case("causal_mask", causal, {2, 1, 1, 6}));
  c.add(only_gradients_of(make_case("", causal, {2, 3, 4, 6}), "causal_only_dmask", {"mask"}));
  c.add(make_case("causal_blocks", {1, 1, 300, 300, 2, 2, true}));
  // More scores than one block holds.
  OpCase blocks = make_case("blocks", {1, 1, 200, 400, 2, 2}, {1, 1, 200, 400});
  blocks.inputs.back().no_grad();  // too many numbers to vary
  c.add(blocks);
  const Sizes rows{1, 3, 9, 11, 6, 7};
  c.add(packed_case("lengths", rows, {4, 2, 3}, {5, 1, 5}));
  c.add(packed_case("lengths_fill_up", rows, {2, 0, 5, 0}, {3, 2, 4, 0}));
  c.add(packed_case("no_lengths", rows, {0, 0}, {0, 0}));
  c.add(packed_case("lengths_causal", {1, 3, 9, 11, 6, 7, true}, {4, 2, 3}, {4, 2, 5}));
  c.add(packed_case("lengths_blocks", {1, 1, 310, 410, 2, 2}, {10, 290}, {20, 380}));
  for (const std::string slot : {"q", "k", "v"})
    c.add(only_gradients_of(packed_case("", rows, {4, 2, 3}, {5, 1, 4}), "lengths_only_d" + slot,
                            {slot}));
  OpCase unknown = packed_case("lengths_unknown", rows, {4, 2, 3}, {5, 1, 5});
  unknown.unknown = {{"q", 1}, {"k", 1}, {"v", 1}, {"q_lengths", 0}, {"k_lengths", 0}};
  c.add(unknown);
  if (!c.timed) return;
  for (const int64_t length : {16, 32, 64, 128}) {
    const std::vector<int64_t> all(static_cast<size_t>(1024 / length), length);
    OpCase packed =
        packed_case(str("packed_", length, ".perf"), {1, 12, 1024, 1024, 64, 64}, all, all);
    packed.perf = true;
    c.add(packed);
  }
  OpCase perf = make_case("bert.perf", {8, 12, 128, 128, 64, 64});
  perf.perf = true;
  c.add(perf);
});

std::string error_of(const Shape& q, const Shape& k, const Shape& v, const Shape& mask = {},
                     bool causal = false) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  try {
    b.op("attention",
         {{"q", b.data("q", f32, q)},
          {"k", b.data("k", f32, k)},
          {"v", b.data("v", f32, v)},
          {"mask", mask.rank() > 0 ? b.data("mask", f32, mask) : ir::Var()}},
         {{"heads", 2}, {"causal", causal}});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Attention, SaysWhatDoesNotFit) {
  EXPECT_EQ(error_of({3, 4, 8}, {3, 5, 8}, {3, 5, 6}), "");
  EXPECT_NE(error_of({3, 4, 7}, {3, 5, 7}, {3, 5, 6}).find("must divide"), std::string::npos);
  EXPECT_NE(error_of({3, 4, 8}, {3, 5, 6}, {3, 5, 6}).find("one width"), std::string::npos);
  EXPECT_NE(error_of({3, 4, 8}, {3, 5, 8}, {3, 4, 6}).find("one length"), std::string::npos);
  EXPECT_NE(error_of({3, 4, 8}, {3, 5, 8}, {3, 5, 6}, {3, 2, 4, 4}).find("broadcasts"),
            std::string::npos);
  EXPECT_NE(error_of({3, 6, 8}, {3, 5, 8}, {3, 5, 6}, {}, true).find("a key for every query"),
            std::string::npos);
}

TEST(Attention, SaysWhichLengthsDoNotFit) {
  const auto bad = [](std::vector<int64_t> queries, std::vector<int64_t> keys, bool causal,
                      std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("attention", packed_case("", {1, 2, 6, 6, 4, 4, causal}, queries, keys));
    });
  };
  bad({4, 3}, {3, 3}, false, {"attention", "add up to 7 queries and 6 keys; there are 6 and 6"});
  bad({2, 8}, {3, 3}, false, {"q_lengths", "id 8", "[1]"});
  bad({-1, 3}, {3, 3}, false, {"q_lengths", "id -1", "[0]"});
  bad({2, 2}, {3, 0}, false, {"sequence 1 has 2 queries, but no keys"});
  bad({2, 3}, {3, 2}, true, {"sequence 1 has 3 queries and 2 keys", "a key for every query"});
}

TEST(Attention, TakesLengthsOfOneRowWithoutAMask) {
  const auto error = [](const Shape& q, const Shape& q_lengths, const Shape& k_lengths, bool mask) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    try {
      b.op("attention",
           {{"q", b.data("q", f32, q)},
            {"k", b.data("k", f32, q)},
            {"v", b.data("v", f32, q)},
            {"mask", mask ? b.data("mask", f32, {q[1]}) : ir::Var()},
            {"q_lengths", b.data("q_lengths", i64, q_lengths)},
            {"k_lengths", k_lengths.rank() ? b.data("k_lengths", i64, k_lengths) : ir::Var()}},
           {{"heads", 2}});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error({1, 6, 8}, {3}, {3}, false), "");
  EXPECT_NE(error({2, 6, 8}, {3}, {3}, false).find("the batch must be 1"), std::string::npos);
  EXPECT_NE(error({1, 6, 8}, {3}, {4}, false).find("one number per sequence"), std::string::npos);
  EXPECT_NE(error({1, 6, 8}, {3}, {}, false).find("come together"), std::string::npos);
  EXPECT_NE(error({1, 6, 8}, {3}, {3}, true).find("cannot be combined"), std::string::npos);
}

}  // namespace
}  // namespace fleetx::testing
