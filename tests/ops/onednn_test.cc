// What is said about reference code.
#include "fleetx/ops/lib/onednn.h"

#include <gtest/gtest.h>

#include "fleetx/ir/builder.h"
#include "fleetx/kernel/implementation.h"
#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

using namespace ops;

TEST(Reference, IsKnownByItsName) {
  for (const char* name : {"ref:any", "gemm:ref", "jit:avx2, dx ref:any"})
    EXPECT_TRUE(kernel::is_reference(name)) << name;
  for (const char* name :
       {"", "jit:avx2", "x64:gemm:jit", "jit_dw:sse41", "own:planes", "simple:any", "prefer:any"})
    EXPECT_FALSE(kernel::is_reference(name)) << name;
}

// What is logged when a convolution of an image of this size is prepared.
std::string logged(int64_t size, std::string_view implementation) {
  ir::Program main, startup;
  ir::Builder b(main, startup);
  const ir::Var x = b.data("x", f32, {2, 3, size, size}), w = b.data("w", f32, {4, 3, 3, 3});
  const ir::Var out = b.op("conv2d", {{"x", x}, {"w", w}}, {});
  const kernel::Setting setting;
  const auto desc = [](const ir::Var& v) {
    kernel::Desc d;
    d.shape = v.shape();
    return d;
  };
  const kernel::Prepare p(main.ops().back(), {desc(x), desc(w)}, {desc(out)}, setting);
  ::testing::internal::CaptureStderr();
  onednn::warn_of_reference(p, implementation);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Reference, IsWarnedOfOnceForEachShape) {
  const std::string text = logged(160, "ref:any");
  for (const char* part :
       {"conv2d", "ref:any", "x f32[2,3,160,160], w f32[4,3,3,3]", "multiples of 8"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  EXPECT_EQ(logged(160, "ref:any"), "");
  EXPECT_NE(logged(161, "ref:any"), "");
  EXPECT_EQ(logged(162, "jit:avx2"), "");
  EXPECT_EQ(logged(20, "ref:any"), "");  // too small to matter
}

}  // namespace
}  // namespace fleetx::testing
