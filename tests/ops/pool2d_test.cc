#include <cmath>

#include "tests/support/op_case.h"

namespace fleetx::testing {
namespace {

struct Pool {
  Shape x;
  Shape out;  // height and width, written down by hand
  ir::Ints kernel{2, 2}, stride{2, 2}, padding{0, 0, 0, 0};
  std::string type = "max";
  bool exclusive = true, ceil = false, global = false, adaptive = false;
};

Tensor reference(const Pool& c, const Tensor& x) {
  const int64_t H = c.x[2], W = c.x[3];
  Tensor out(f32, {c.x[0], c.x[1], c.out[0], c.out[1]});
  size_t at = 0;
  for (int64_t plane = 0; plane < c.x[0] * c.x[1]; ++plane)
    for (int64_t i = 0; i < c.out[0]; ++i)
      for (int64_t j = 0; j < c.out[1]; ++j) {
        int64_t top = i * c.stride[0] - c.padding[0], left = j * c.stride[1] - c.padding[2];
        int64_t bottom = top + c.kernel[0], right = left + c.kernel[1];
        if (c.global) top = left = 0, bottom = H, right = W;
        if (c.adaptive) {
          top = static_cast<int64_t>(std::floor(double(i) * double(H) / double(c.out[0])));
          bottom = static_cast<int64_t>(std::ceil(double(i + 1) * double(H) / double(c.out[0])));
          left = static_cast<int64_t>(std::floor(double(j) * double(W) / double(c.out[1])));
          right = static_cast<int64_t>(std::ceil(double(j + 1) * double(W) / double(c.out[1])));
        }
        double sum = 0, largest = -1e30, inside = 0, with_padding = 0;
        for (int64_t h = top; h < bottom; ++h)
          for (int64_t w = left; w < right; ++w) {
            if (h < H + c.padding[1] && w < W + c.padding[3]) with_padding += 1;
            if (h < 0 || w < 0 || h >= H || w >= W) continue;
            const double v = x.data<float>()[static_cast<size_t>((plane * H + h) * W + w)];
            sum += v;
            largest = std::max(largest, v);
            inside += 1;
          }
        const double average = sum / (c.exclusive ? inside : with_padding);
        out.data<float>()[at++] = static_cast<float>(c.type == "max" ? largest : average);
      }
  return out;
}

// Distinct values far enough apart that a step of the differences does not change the largest.
Tensor distinct(const Shape& shape) {
  Tensor t(f32, shape);
  const auto n = static_cast<size_t>(shape.numel());
  for (size_t i = 0; i < n; ++i) t.data<float>()[i] = 0.05f * static_cast<float>(i * 7919 % n);
  return t;
}

OpCase make_case(const std::string& label, const Pool& c) {
  OpCase out{.label = label, .inputs = {{"x", c.type == "max" ? distinct(c.x) : random(c.x)}}};
  out.attrs = {{"kernel", c.adaptive ? ir::Ints(c.out.dims()) : c.kernel},
               {"stride", c.stride},
               {"padding", c.padding},
               {"type", c.type},
               {"exclusive", c.exclusive},
               {"ceil_mode", c.ceil},
               {"global", c.global},
               {"adaptive", c.adaptive}};
  out.reference = [c](const Tensors& in) -> Tensors { return {reference(c, in[0])}; };
  return out;
}

const AddCases cases("pool2d", [](Cases& c) {
  for (const std::string type : {"max", "avg"}) {
    const auto add = [&](const std::string& label, Pool pool) {
      pool.type = type;
      c.add(make_case(type + "_" + label, pool));
    };
    add("two", {.x = {2, 3, 6, 4}, .out = {3, 2}});
    add("resnet", {.x = {1, 4, 9, 9},
                   .out = {5, 5},
                   .kernel = {3, 3},
                   .stride = {2, 2},
                   .padding = {1, 1, 1, 1}});
    add("overlap", {.x = {1, 5, 7, 8}, .out = {5, 3}, .kernel = {3, 4}, .stride = {1, 2}});
    add("padding", {.x = {1, 2, 5, 5},
                    .out = {3, 2},
                    .kernel = {3, 3},
                    .stride = {2, 2},
                    .padding = {0, 2, 1, 0}});
    add("ceil", {.x = {2, 2, 6, 7}, .out = {3, 3}, .kernel = {3, 3}, .ceil = true});
    add("ceil_padding", {.x = {1, 2, 6, 6},
                         .out = {4, 4},
                         .kernel = {3, 3},
                         .padding = {1, 1, 1, 1},
                         .ceil = true});
    // A third window of height would begin behind the image.
    add("ceil_left_out", {.x = {1, 1, 4, 5}, .out = {2, 3}, .kernel = {1, 1}, .ceil = true});
    add("global", {.x = {2, 17, 7, 5}, .out = {1, 1}, .global = true});
    add("adaptive", {.x = {2, 3, 6, 8}, .out = {3, 2}, .adaptive = true});
    add("adaptive_uneven", {.x = {2, 3, 7, 5}, .out = {3, 4}, .adaptive = true});
    add("adaptive_up", {.x = {1, 2, 2, 3}, .out = {3, 5}, .adaptive = true});
  }
  c.add(make_case("avg_inclusive", {.x = {1, 3, 5, 5},
                                    .out = {3, 3},
                                    .kernel = {3, 3},
                                    .padding = {1, 1, 1, 1},
                                    .type = "avg",
                                    .exclusive = false}));
  c.add(make_case("avg_inclusive_ceil", {.x = {1, 3, 6, 6},
                                         .out = {4, 4},
                                         .kernel = {3, 3},
                                         .padding = {1, 1, 1, 1},
                                         .type = "avg",
                                         .exclusive = false,
                                         .ceil = true}));
  if (!c.timed) return;
  OpCase perf = make_case(
      "resnet.perf",
      {.x = {16, 64, 112, 112}, .out = {56, 56}, .kernel = {3, 3}, .padding = {1, 1, 1, 1}});
  perf.perf = true;
  c.add(perf);
});

}  // namespace
}  // namespace fleetx::testing
