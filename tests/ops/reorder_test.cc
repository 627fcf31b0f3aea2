// The plan's reorder kernels against the plain loops of tensor/layout.h, over the kinds of layouts
// that convolutions choose.
#include "fleetx/kernel/reorder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "fleetx/tensor/tensor.h"

namespace fleetx::ops {
namespace {

const Layout kNchw16c{{0, 1, 2, 3}, {{1, 16}}};
const Layout kNchw8c{{0, 1, 2, 3}, {{1, 8}}};
const Layout kNhwc{{0, 2, 3, 1}, {}};
const Layout kOihw16i16o{{0, 1, 2, 3}, {{1, 16}, {0, 16}}};
const Layout kOihw4i16o4i{{0, 1, 2, 3}, {{1, 4}, {0, 16}, {1, 4}}};
const Layout kIohw8o8i{{1, 0, 2, 3}, {{0, 8}, {1, 8}}};

template <class T>
Tensor counting(const Shape& shape) {
  std::vector<T> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i % 251 + 1);
  return Tensor::of<T>(shape, values);
}

void expect_reorder(const Tensor& plain, const Layout& from, const Layout& to) {
  const Tensor source = plain.to(from), want = plain.to(to);
  Tensor got(plain.dtype(), plain.shape(), to);
  std::memset(got.raw(), 0x7f, got.bytes());  // padding must be written, not found
  const auto kernel = kernel::make_reorder({plain.dtype(), plain.shape(), from},
                                           {plain.dtype(), plain.shape(), to});
  void* pointers[] = {source.raw(), got.raw()};
  kernel->run(kernel::Run(pointers));
  EXPECT_EQ(std::memcmp(got.raw(), want.raw(), want.bytes()), 0)
      << plain.dtype() << plain.shape() << " from " << from << " to " << to;
}

TEST(Reorder, AllPairsOfLayouts) {
  const std::vector<Layout> layouts{Layout::plain(), kNchw16c,     kNchw8c,  kNhwc,
                                    kOihw16i16o,     kOihw4i16o4i, kIohw8o8i};
  for (const Shape& shape : {Shape{2, 32, 5, 3}, Shape{20, 19, 3, 3}, Shape{1, 3, 1, 1}}) {
    const Tensor plain = counting<float>(shape);
    for (const Layout& from : layouts)
      for (const Layout& to : layouts) expect_reorder(plain, from, to);
  }
}

TEST(Reorder, AllTypes) {
  const Shape shape{2, 19, 4, 4};
  for (const Layout& to : {kNchw16c, kNhwc}) {
    for (const Tensor& plain :
         {counting<double>(shape), counting<int32_t>(shape), counting<int64_t>(shape),
          counting<Half>(shape), counting<BFloat16>(shape), counting<uint8_t>(shape)}) {
      expect_reorder(plain, Layout::plain(), to);
      expect_reorder(plain, to, Layout::plain());
    }
  }
}

TEST(Reorder, KeepsEveryBit) {
  const float odd[] = {-0.0f, 1e-42f, INFINITY, -INFINITY, NAN, 1e38f};
  Tensor plain = counting<float>({2, 3, 4, 5});
  std::memcpy(plain.raw(), odd, sizeof odd);
  expect_reorder(plain, Layout::plain(), kNchw16c);
  expect_reorder(plain, kNchw16c, Layout::plain());
  expect_reorder(plain, Layout::plain(), kNhwc);
}

TEST(Reorder, RefusesAnotherShape) {
  EXPECT_THROW(kernel::make_reorder({f32, {2, 3}, {}}, {f32, {3, 2}, {}}), Error);
}

}  // namespace
}  // namespace fleetx::ops
