#include <gtest/gtest.h>

#include "fleetx/kernel/op.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

const AddCases cases("sum", [](Cases& c) {
  for (const int count : {1, 2, 5})
    c.add({.label = str("of_", count),
           .inputs = {{"xs",
                       [&] {
                         Tensors xs;
                         for (int i = 0; i < count; ++i)
                           xs.push_back(random({3, 41}, static_cast<uint64_t>(i)));
                         return xs;
                       }()}},
           .reference = [](const Tensors& in) -> Tensors {
             Tensor out = in[0].clone();
             for (size_t i = 1; i < in.size(); ++i)
               out = zip(out, in[i], [](float a, float b) { return a + b; });
             return {out};
           }});
  c.add({.label = "integers",
         .inputs = {{"xs", Tensors{random_ints({9}, -9, 9), random_ints({9}, -9, 9, 1)}}},
         .reference = [](const Tensors& in) -> Tensors {
           Tensor out = in[0].clone();
           for (size_t i = 0; i < 9; ++i) out.data<int64_t>()[i] += in[1].data<int64_t>()[i];
           return {out};
         },
         .gradient = false});
  c.add({.label = "perf_2",
         .inputs = {{"xs", Tensors{random({1 << 20}), random({1 << 20}, 1)}}},
         .reference = {},
         .perf = true});
  c.add({.label = "perf_4",
         .inputs = {{"xs", Tensors{random({1 << 20}), random({1 << 20}, 1), random({1 << 20}, 2),
                                   random({1 << 20}, 3)}}},
         .reference = {},
         .perf = true});
});

// Sparse rows are not fed by users, so these run the kernel by itself.
class SparseSum : public ::testing::Test {
 protected:
  static constexpr int64_t kTable = 6, kWidth = 3, kCapacity = 4;

  // Runs sum over the given inputs; returns the memory of out.
  std::vector<char> run(const std::vector<kernel::Desc>& xs, std::vector<std::vector<char>> memory,
                        const kernel::Desc& out) {
    ir::Op op;
    op.def = &ir::op_def("sum");
    op.inputs.emplace_back();
    for (size_t i = 0; i < xs.size(); ++i) op.inputs[0].push_back(str("x", i));
    op.outputs = {{"out"}};
    kernel::Prepare prepare(op, xs, {out}, 0, false);
    const auto kernel = op.def->make_kernel(prepare);
    memory.emplace_back(out.bytes());
    std::vector<void*> pointers;
    for (auto& m : memory) pointers.push_back(m.data());
    kernel->run(kernel::Run(pointers.data()));
    return memory.back();
  }

  static kernel::Desc dense() { return {f32, {kTable, kWidth}, {}, ir::VarKind::kDense, 0}; }
  static kernel::Desc sparse(int64_t rows) {
    return {f32, {kTable, kWidth}, {}, ir::VarKind::kSparseRows, rows};
  }
  // Row r of the values is first, first + 1, ...
  static std::vector<char> rows(const std::vector<int64_t>& ids, float first) {
    std::vector<char> memory(sparse(kCapacity).bytes());
    const kernel::SparseRows to = kernel::SparseRows::at(memory.data(), kCapacity);
    *to.count = static_cast<int64_t>(ids.size());
    std::copy(ids.begin(), ids.end(), to.ids);
    for (size_t i = 0; i < ids.size() * kWidth; ++i) to.values[i] = first + static_cast<float>(i);
    return memory;
  }
};

TEST_F(SparseSum, OfSparseIsSparse) {
  std::vector<char> memory =
      run({sparse(kCapacity), sparse(kCapacity)}, {rows({5, 2}, 1), rows({2}, 100)}, sparse(8));
  const kernel::SparseRows out = kernel::SparseRows::at(memory.data(), 8);
  EXPECT_EQ(*out.count, 3);
  EXPECT_EQ(std::vector<int64_t>(out.ids, out.ids + 3), (std::vector<int64_t>{5, 2, 2}));
  EXPECT_EQ(std::vector<float>(out.values, out.values + 9),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 100, 101, 102}));
}

TEST_F(SparseSum, WithDenseIsDense) {
  std::vector<char> ones(dense().bytes());
  std::fill_n(reinterpret_cast<float*>(ones.data()), kTable * kWidth, 1.0f);
  std::vector<char> memory = run({sparse(kCapacity), dense()}, {rows({5, 2, 5}, 1), ones}, dense());
  const auto* out = reinterpret_cast<const float*>(memory.data());
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[2 * kWidth], 1 + 4);
  EXPECT_EQ(out[5 * kWidth], 1 + 1 + 7);
  EXPECT_EQ(out[5 * kWidth + 2], 1 + 3 + 9);
}

}  // namespace
}  // namespace fleetx::testing
