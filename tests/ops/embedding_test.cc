#include "fleetx/autograd/backward.h"
#include "fleetx/ir/builder.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/tabulate.h"

namespace fleetx::testing {
namespace {

auto looked_up(int64_t padding) {
  return [padding](const Tensors& in) -> Tensors {
    Shape shape = in[0].shape();
    shape.push_back(in[1].shape()[1]);
    return {tabulate(shape, [&](const Index& i) {
      const int64_t id = at<int64_t>(in[0], Index(i.begin(), i.end() - 1));
      return id == padding ? 0.0f : at(in[1], {id, i.back()});
    })};
  };
}

const AddCases cases("embedding", [](Cases& c) {
  for (const bool sparse : {false, true}) {
    const std::string kind = sparse ? "sparse_" : "dense_";
    const auto add = [&](const std::string& label, Tensor ids, Shape table, int64_t padding) {
      c.add({.label = kind + label,
             .inputs = {{"ids", ids}, {"w", random(table)}},
             .attrs = {{"sparse", sparse}, {"padding_idx", padding}},
             .unknown = {{"ids", 0}},
             .reference = looked_up(padding)});
    };
    add("words", Tensor::of<int64_t>({2, 3}, {0, 4, 4, 2, 4, 0}), {5, 3}, -1);
    add("padding", Tensor::of<int64_t>({2, 3}, {0, 4, 0, 2, 4, 0}), {5, 3}, 0);
    add("only_padding", Tensor::of<int64_t>({2}, {1, 1}), {5, 3}, 1);
    add("column", Tensor::of<int64_t>({3, 1}, {2, 0, 2}), {3, 2}, -1);
    add("scalars", Tensor::of<int64_t>({4}, {2, 0, 2, 1}), {3, 1}, -1);
    add("wide", random_ints({50}, 0, 20), {20, 900}, -1);
  }
  const auto perf = [&](const std::string& label, bool sparse, Tensor ids, Shape table) {
    if (c.timed)
      c.add({.label = label,
             .inputs = {{"ids", ids}, {"w", random(table)}},
             .attrs = {{"sparse", sparse}},
             .perf = true});
  };
  perf("perf_ctr", true, random_ints({4096, 26}, 0, 1000000), {1000000, 16});
  perf("perf_words", false, random_ints({32, 128}, 0, 30522), {30522, 768});
});

const AddCases grad_cases("embedding_grad", [](Cases& c) {
  const auto perf = [&](const std::string& label, bool sparse, Tensor ids, Shape table) {
    Shape dout = ids.shape();
    dout.push_back(table[1]);
    if (c.timed)
      c.add({.label = label,
             .inputs = {{"ids", ids}, {"dout", random(dout)}},
             .attrs = {{"sparse", sparse}, {"shape", table}},
             .perf = true});
  };
  perf("perf_sparse_ctr", true, random_ints({4096, 26}, 0, 100000), {100000, 16});
  perf("perf_dense_ctr", false, random_ints({4096, 26}, 0, 100000), {100000, 16});
  perf("perf_dense_words", false, random_ints({32, 128}, 0, 30522), {30522, 768});
});

// The gradient is declared as sparse rows with room for every id, known only when the batch is.
TEST(Embedding, SparseGradientType) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var ids = b.data("ids", i64, {-1, 4});
  const ir::Var w = b.parameter({.name = "w", .shape = {10, 3}});
  const ir::Var out = b.op("embedding", {{"ids", ids}, {"w", w}}, {{"sparse", true}});
  const ir::Var seed = b.data("seed", f32, {-1, 4, 3});
  const ir::Var dw = autograd::gradients({out}, {w}, {seed})[0];
  EXPECT_EQ(dw.type(), (ir::TensorType{f32, {10, 3}, ir::VarKind::kSparseRows, -1}));
}

TEST(EmbeddingErrors, NameIdPlaceAndTable) {
  const auto bad = [](Tensor ids, Tensor w, int64_t padding,
                      std::initializer_list<std::string_view> parts) {
    expect_error(Error::Kind::kInvalidArgument, parts, [&] {
      run_op("embedding",
             {.inputs = {{"ids", ids}, {"w", w}}, .attrs = {{"padding_idx", padding}}});
    });
  };
  bad(Tensor::of<int64_t>({2, 2}, {0, 1, 2, 100}), random({10, 3}), -1,
      {"embedding", "ids", "id 100", "[1,1]", "10 rows", "'w"});
  bad(Tensor::of<int32_t>({2}, {0, -5}), random({10, 3}), -1, {"id -5", "[1]"});
  bad(Tensor::of<int64_t>({1}, {0}), random({10, 3}), 10, {"padding_idx", "got 10"});
  bad(random({1}), random({10, 3}), -1, {"i64 or i32"});
  bad(Tensor::of<int64_t>({1}, {0}), random({10}), -1, {"[rows, width]"});
}

// A bad batch must not spoil the plan for the next one.
TEST(EmbeddingErrors, NextRunIsFine) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var ids = b.data("ids", i64, {-1});
  const ir::Var w = b.data("w", f32, {4, 2});
  const ir::Var out = b.op("embedding", {{"ids", ids}, {"w", w}});
  runtime::Executor exe;
  runtime::Scope scope;
  const Tensor table = random({4, 2});
  const auto run = [&](int64_t id) {
    return exe
        .run(main, scope, {{"ids", Tensor::of<int64_t>({1}, {id})}, {"w", table}}, {out.name()})[0]
        .clone();
  };
  expect_error(Error::Kind::kInvalidArgument, {"id 4", "4 rows"}, [&] { run(4); });
  expect_close(run(3), Tensor::of<float>({1, 2}, {at(table, {3, 0}), at(table, {3, 1})}), 0, "out");
}

}  // namespace
}  // namespace fleetx::testing
