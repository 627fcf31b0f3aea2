#include "fleetx/runtime/scope.h"

#include <gtest/gtest.h>

namespace fleetx::runtime {
namespace {

TEST(Scope, SetKeepsMemoryAndLayoutWhereTheTypeFits) {
  Scope scope;
  const Layout blocked{{0, 1, 2, 3}, {{1, 8}}};
  scope.replace("w", Tensor(DType::kF32, {2, 8, 1, 1}, blocked));
  const uint64_t generation = scope.generation();
  const void* memory = scope.find("w")->raw();
  std::vector<float> values(16);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  scope.set("w", Tensor::of<float>({2, 8, 1, 1}, values));
  EXPECT_EQ(scope.generation(), generation);
  EXPECT_EQ(scope.find("w")->raw(), memory);
  EXPECT_EQ(scope.find("w")->layout(), blocked);
  const Tensor back = scope.get("w");
  EXPECT_TRUE(std::equal(values.begin(), values.end(), back.data<float>().begin()));
}

TEST(Scope, AnotherShapeReplacesTheTensor) {
  Scope scope;
  scope.set("a", Tensor::scalar(1.0f));
  const uint64_t generation = scope.generation();
  scope.set("a", Tensor::of<float>({2}, {1, 2}));
  EXPECT_GT(scope.generation(), generation);
  EXPECT_EQ(scope.bytes(), 8u);
}

TEST(Scope, UnknownNamesAreExplained) {
  Scope scope;
  scope.set("fc_0.w_0", Tensor::scalar(1.0f));
  try {
    (void)scope.get("fc_0.w_1");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "the scope has no variable 'fc_0.w_1'; did you mean 'fc_0.w_0'?");
  }
}

}  // namespace
}  // namespace fleetx::runtime
