#include "fleetx/tensor/layout.h"

#include <gtest/gtest.h>

#include "fleetx/tensor/tensor.h"

namespace fleetx {
namespace {

const Layout kBlocked{{0, 1, 2, 3}, {{1, 8}}};          // nChw8c
const Layout kWeights{{0, 1, 2, 3}, {{1, 8}, {0, 8}}};  // OIhw8i8o
const Layout kNhwc{{0, 2, 3, 1}, {}};

Tensor counting(Shape shape) {
  Tensor t(DType::kF32, std::move(shape));
  float next = 1;
  for (float& v : t.data<float>()) v = next++;
  return t;
}

TEST(Layout, OffsetsFollowOrderAndBlocks) {
  const Shape shape{2, 16, 3, 5};
  EXPECT_EQ(Layout::plain().offset(shape, {1, 2, 1, 4}), ((1 * 16 + 2) * 3 + 1) * 5 + 4);
  EXPECT_EQ(kNhwc.offset(shape, {1, 2, 1, 4}), ((1 * 3 + 1) * 5 + 4) * 16 + 2);
  // n, channel block, h, w, channel in block.
  EXPECT_EQ(kBlocked.offset(shape, {1, 11, 1, 4}), ((((1 * 2 + 1) * 3) + 1) * 5 + 4) * 8 + 3);
  const Shape weights{16, 8, 1, 1};
  EXPECT_EQ(kWeights.offset(weights, {9, 5, 0, 0}), 64 + 5 * 8 + 1);
}

TEST(Layout, PaddingIsCountedAndZero) {
  const Shape shape{2, 5, 3, 3};
  EXPECT_EQ(kBlocked.stored(shape), 2 * 8 * 9);
  EXPECT_TRUE(kBlocked.has_padding(shape));
  EXPECT_FALSE(kBlocked.has_padding({2, 16, 3, 3}));
  const Tensor blocked = counting(shape).to(kBlocked);
  double sum = 0;
  for (const float v : blocked.data<float>()) sum += v;
  EXPECT_EQ(sum, 90.0 * 91.0 / 2);  // the padding adds nothing
}

TEST(Layout, ConversionsRoundTrip) {
  for (const Shape& shape : {Shape{2, 5, 3, 3}, Shape{3, 16, 4, 1}, Shape{17, 9, 2, 2}}) {
    const Tensor plain = counting(shape);
    for (const Layout& layout : {kBlocked, kWeights, kNhwc}) {
      const Tensor back = plain.to(layout).plain();
      EXPECT_TRUE(std::equal(plain.data<float>().begin(), plain.data<float>().end(),
                             back.data<float>().begin()))
          << str(layout, " ", shape);
    }
    const Tensor across = plain.to(kNhwc).to(kBlocked).plain();
    EXPECT_TRUE(std::equal(plain.data<float>().begin(), plain.data<float>().end(),
                           across.data<float>().begin()));
  }
}

TEST(Tensor, WrongTypesAndSizesAreErrorsThatSaySo) {
  const Tensor t = counting({2, 3});
  try {
    (void)t.data<int64_t>();
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "this tensor holds f32, asked for i64");
  }
  EXPECT_THROW(Tensor::of<float>({2, 2}, {1, 2, 3}), Error);
  EXPECT_THROW(Tensor(DType::kF32, {-1, 3}), Error);
  EXPECT_THROW((void)t.reshaped({4, 2}), Error);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % kAlignment, 0u);
}

}  // namespace
}  // namespace fleetx
