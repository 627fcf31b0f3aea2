#include "fleetx/ops/lib/strided_copy.h"

#include <gtest/gtest.h>

namespace fleetx::ops {
namespace {

using Dims = std::vector<StridedCopy::Dim>;

// Every element by its own: the definition of a strided copy.
void naive(const char* in, char* out, size_t bytes, const Dims& dims, size_t d = 0) {
  if (d == dims.size()) {
    std::copy_n(in, bytes, out);
    return;
  }
  const auto unit = static_cast<int64_t>(bytes);
  for (int64_t i = 0; i < dims[d].size; ++i)
    naive(in + i * dims[d].in * unit, out + i * dims[d].out * unit, bytes, dims, d + 1);
}

struct Case {
  std::string_view kind;
  Dims dims;
  int64_t start = 0;  // of the input, for negative strides
};

TEST(StridedCopy, EqualsTheDefinition) {
  const std::vector<Case> cases = {
      {"memcpy", {{6, 4, 4}, {4, 1, 1}}},
      {"memcpy", {{1, 9, 9}, {1, 7, 7}}},
      {"memcpy", {{1 << 19, 1, 1}}},                             // several pieces
      {"rows", {{3, 40, 20}, {2, 20, 60}, {20, 1, 1}}},          // [0,2,1,3] of attention
      {"rows", {{5, 9, 5}, {5, 1, 1}}},                          // slice
      {"rows", {{2, 1 << 17, (1 << 17) + 8}, {1 << 17, 1, 1}}},  // concat of long rows
      {"rows", {{2, 300000, 400000}, {300000, 1, 1}}},           // rows in pieces
      {"transpose", {{37, 1, 53}, {53, 37, 1}}},
      {"transpose", {{3, 64 * 64, 64 * 64}, {64, 1, 64}, {64, 64, 1}}},
      {"transpose",
       {{19, 1, 15}, {5, 19, 3}, {3, 95, 1}}},  // the fastest of three becomes outermost
      {"elements", {{7, 0, 33}, {33, 0, 1}}},   // one value everywhere
      {"elements", {{7, 1, 33}, {33, 0, 1}}},   // column repeated
      {"rows", {{7, 0, 33}, {33, 1, 1}}},       // row repeated
      {"elements", {{9, 20, 10}, {10, 2, 1}}},  // every second
      {"elements", {{100, -1, 1}}, 99},         // backwards
      {"memcpy", {{3, 0, 0}, {0, 1, 1}}},       // nothing
      {"memcpy", {}},                           // one element
  };
  for (const size_t bytes : {size_t{1}, size_t{2}, size_t{4}, size_t{8}}) {
    for (const Case& c : cases) {
      std::vector<char> in(bytes << 20), want(bytes << 20, 'x'), got(want);
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i * 2654435761u >> 13);
      const StridedCopy copy(bytes, c.dims);
      const char* from = in.data() + c.start * static_cast<int64_t>(bytes);
      naive(from, want.data(), bytes, c.dims);
      copy.run(from, got.data());
      const auto text =
          ::testing::PrintToString(&c - cases.data()) + ": " + ::testing::PrintToString(bytes);
      EXPECT_TRUE(got == want) << text;
      if (bytes == 4) {
        EXPECT_EQ(copy.kind(), c.kind) << text;
      }
    }
  }
}

TEST(StridedCopy, RowMajorStrides) {
  EXPECT_EQ(strides_of({2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_TRUE(strides_of({}).empty());
}

}  // namespace
}  // namespace fleetx::ops
