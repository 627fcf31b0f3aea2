#include <gtest/gtest.h>

#include <cmath>

#include "fleetx/ir/builder.h"
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

}  // namespace
}  // namespace fleetx::testing
