// pool2d: the largest value or the average of windows of each channel, x [N,C,H,W] -> out
// [N,C,h,w].
//   h = (H + top + bottom - kernel) / stride + 1, rounded up with ceil_mode; a window that would
//   begin behind the image and its leading padding is left out
//   global: one window, the whole image; adaptive: `kernel` is the output size, window i covers
//   [floor(i*H/h), ceil((i+1)*H/h))
// An average divides by the places inside the image (exclusive) or inside image and padding.
// The gradient of max goes to the first largest place of a window, that of avg to all alike; both
// are found again from x and out, so the forward keeps no indices.
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/channels.h"
#include "fleetx/ops/lib/half.h"
#include "fleetx/ops/lib/in_f32.h"

namespace fleetx::ops {
namespace {

// The windows along height or width: places [begin, end) inside the image, and what an average
// divides by.
struct Windows {
  std::vector<int64_t> begin, end, divisor;
  size_t count() const { return begin.size(); }
};

struct Axis {
  int64_t size, kernel, stride, before, after;
};

template <class Args>
Axis axis_of(const Args& args, const Shape& x, int i) {
  const auto d = static_cast<size_t>(i);
  const int64_t size = x[2 + i];
  if (args.template attr<bool>("global")) return {size, size, 1, 0, 0};
  const auto padding = args.template attr<ir::Ints>("padding");
  const bool four = padding.size() == 4;
  return {size, args.template attr<ir::Ints>("kernel")[d],
          args.template attr<ir::Ints>("stride")[d], padding[four ? 2 * d : d],
          padding[four ? 2 * d + 1 : d]};
}

int64_t output_size(const Axis& a, bool ceil_mode) {
  const int64_t room = a.size + a.before + a.after - a.kernel;
  int64_t count = (room + (ceil_mode ? a.stride - 1 : 0)) / a.stride + 1;
  if ((count - 1) * a.stride >= a.size + a.before) --count;
  return count;
}

Windows windows(const kernel::Prepare& p, const Shape& x, const Shape& out, int i) {
  const Axis a = axis_of(p, x, i);
  const bool adaptive = p.attr<bool>("adaptive") && !p.attr<bool>("global");
  const bool exclusive = p.attr<bool>("exclusive") || adaptive;
  Windows w;
  for (int64_t o = 0; o < out[2 + i]; ++o) {
    const int64_t first = adaptive ? o * a.size / out[2 + i] : o * a.stride - a.before;
    const int64_t last = adaptive ? ((o + 1) * a.size + out[2 + i] - 1) / out[2 + i]
                                  : std::min(first + a.kernel, a.size + a.after);
    w.begin.push_back(std::max<int64_t>(first, 0));
    w.end.push_back(std::min(last, a.size));
    w.divisor.push_back(exclusive ? w.end.back() - w.begin.back() : last - first);
  }
  return w;
}

Shape check(const ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  c.check(is_f32_or_half(c.in("x").dtype) && x.rank() == 4, c.show("x"),
          "; expected f32, bf16 or f16 of rank 4 [N,C,H,W]");
  c.check(x[2] > 0 && x[3] > 0, c.show("x"), "; the image is empty");
  const auto type = c.attr<std::string>("type");
  c.check(type == "max" || type == "avg", "type is '", type, "'; known: 'max' and 'avg'");
  if (c.attr<bool>("global")) return {x[0], x[1], 1, 1};
  const auto kernel = c.attr<ir::Ints>("kernel"), stride = c.attr<ir::Ints>("stride");
  const auto padding = c.attr<ir::Ints>("padding");
  c.check(kernel.size() == 2 && kernel[0] > 0 && kernel[1] > 0, "kernel ", ir::Attr(kernel),
          "; expected two positive numbers");
  if (c.attr<bool>("adaptive")) return {x[0], x[1], kernel[0], kernel[1]};
  c.check(stride.size() == 2 && stride[0] > 0 && stride[1] > 0, "stride ", ir::Attr(stride),
          "; expected two positive numbers");
  c.check(padding.size() == 2 || padding.size() == 4, "padding has ", padding.size(),
          " numbers; expected 2 (height, width) or 4 (top, bottom, left, right)");
  Shape out{x[0], x[1], 0, 0};
  for (int i = 0; i < 2; ++i) {
    const Axis a = axis_of(c, x, i);
    // Else a window could lie in the padding altogether.
    c.check(a.before >= 0 && a.after >= 0 && a.before < a.kernel && a.after < a.kernel,
            "padding is ", a.before, " and ", a.after, " for a kernel of ", a.kernel,
            "; must be at least 0 and less than the kernel");
    c.check(a.size + a.before + a.after >= a.kernel, c.show("x"), "; with padding it is ",
            a.size + a.before + a.after, " long in dimension ", 2 + i, ", the kernel ", a.kernel);
    out[2 + i] = output_size(a, c.attr<bool>("ceil_mode"));
  }
  return out;
}

void infer(ir::Infer& c) { c.out("out") = {c.in("x").dtype, check(c)}; }

void grad(ir::Grad& g) {
  g.set("x", g.op("pool2d_grad", {{"x", g.in("x")}, {"out", g.out("out")}, {"dout", g.dout("out")}},
                  g.attrs(), {{"dx", g.dx("x")}}));
}

// Both walk over kernel-sized windows, one operation per place.
ir::Cost cost(const ir::Infer& c) {
  const Shape x = c.in("x").shape, out = check(c);
  double places = static_cast<double>(x.numel());
  if (!c.attr<bool>("global") && !c.attr<bool>("adaptive"))
    places = static_cast<double>(out.numel() * c.attr<ir::Ints>("kernel")[0] *
                                 c.attr<ir::Ints>("kernel")[1]);
  return {.flops = places};
}

// What the four loops have in common: planes of (image, block of channels), windows in them.
class Pool : public kernel::Kernel {
 public:
  Pool(const kernel::Prepare& p, const Shape& x, const Shape& out)
      : layout_(Channels::of(x, p.in("x").layout) ? p.in("x").layout : Layout::plain()),
        c_(*Channels::of(x, layout_)),
        rows_(windows(p, x, out, 0)),
        columns_(windows(p, x, out, 1)),
        width_(x[3]),
        max_(p.attr<std::string>("type") == "max") {}

  std::string_view implementation() const override { return "own:channels"; }

 protected:
  // fn(plane of x, plane of out, lanes) for every plane and tile of its channels; both are offsets.
  template <class Fn>
  void for_each_plane(const Fn& fn) const {
    const auto places = static_cast<int64_t>(rows_.count() * columns_.count());
    const int64_t planes = c_.batch * c_.outer;
    parallel_for(planes, (1 << 12) / (places * c_.block) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane)
        for (int64_t tile = 0; tile < c_.block; tile += Strips::kMaxLanes)
          with_lanes(static_cast<int>(std::min(Strips::kMaxLanes, c_.block - tile)),
                     [=, this, &fn](auto lanes) {
                       fn(plane * c_.spatial * c_.block + tile, plane * places * c_.block + tile,
                          lanes);
                     });
    });
  }
  // fn(place of out, its divisor, window rows, window columns)
  template <class Fn>
  void for_each_window(const Fn& fn) const {
    int64_t place = 0;
    for (size_t i = 0; i < rows_.count(); ++i)
      for (size_t j = 0; j < columns_.count(); ++j)
        fn(place++ * c_.block, static_cast<float>(rows_.divisor[i] * columns_.divisor[j]),
           rows_.begin[i], rows_.end[i], columns_.begin[j], columns_.end[j]);
  }

  Layout layout_;
  Channels c_;
  Windows rows_, columns_;
  int64_t width_;
  bool max_;
};

class Pool2d final : public Pool {
 public:
  explicit Pool2d(kernel::Prepare& p)
      : Pool(p, p.in("x").shape, p.out("out").shape),
        x_(p.input("x", 0, layout_)),
        out_(p.output("out", 0, layout_)) {}

  void run(const kernel::Run& r) override {
    const float* x = r.in<float>(x_);
    float* out = r.out<float>(out_);
    for_each_plane([=, this](int64_t from, int64_t to, auto lanes) {
      max_ ? walk<true>(x + from, out + to, lanes) : walk<false>(x + from, out + to, lanes);
    });
  }

 private:
  template <bool kMax, class Lanes>
  void walk(const float* x, float* out, Lanes lanes) const {
    const int64_t block = c_.block, width = width_;
    for_each_window([=](int64_t place, float divisor, int64_t top, int64_t bottom, int64_t left,
                        int64_t right) {
      float acc[Strips::kMaxLanes];
      for_lanes(lanes, [&](int l) { acc[l] = kMax ? -INFINITY : 0.0f; });
      for (int64_t h = top; h < bottom; ++h)
        for (int64_t w = left; w < right; ++w) {
          const float* at = x + (h * width + w) * block;
          for_lanes(lanes, [&](int l) {
            if constexpr (kMax)
              acc[l] = (at[l] > acc[l]) | (at[l] != at[l]) ? at[l] : acc[l];  // a NaN wins
            else
              acc[l] += at[l];
          });
        }
      for_lanes(lanes, [&](int l) { out[place + l] = kMax ? acc[l] : acc[l] / divisor; });
    });
  }

  kernel::Slot x_, out_;
};

void infer_grad(ir::Infer& c) {
  const ir::TensorType want{c.in("x").dtype, check(c)};
  for (const auto* slot : {"out", "dout"})
    c.check(c.by_example() || c.in(slot) == want, c.show(slot), "; expected ", want);
  c.out("dx") = c.in("x");
}

class Pool2dGrad final : public Pool {
 public:
  explicit Pool2dGrad(kernel::Prepare& p)
      : Pool(p, p.in("x").shape, p.in("dout").shape),
        x_(max_ ? p.input("x", 0, layout_) : p.input_as_is("x")),
        out_(max_ ? p.input("out", 0, layout_) : p.input_as_is("out")),
        dout_(p.input("dout", 0, layout_)),
        dx_(p.output("dx", 0, layout_)) {}

  void run(const kernel::Run& r) override {
    const float *x = r.in<float>(x_), *out = r.in<float>(out_), *dout = r.in<float>(dout_);
    float* dx = r.out<float>(dx_);
    for_each_plane([=, this](int64_t from, int64_t to, auto lanes) {
      for (int64_t s = 0; s < c_.spatial; ++s)
        for_lanes(lanes, [&](int l) { dx[from + s * c_.block + l] = 0.0f; });
      max_ ? walk_max(x + from, out + to, dout + to, dx + from, lanes)
           : walk_avg(dout + to, dx + from, lanes);
    });
  }

 private:
  template <class Lanes>
  void walk_max(const float* x, const float* out, const float* dout, float* dx, Lanes lanes) const {
    const int64_t block = c_.block, width = width_;
    for_each_window(
        [=](int64_t place, float, int64_t top, int64_t bottom, int64_t left, int64_t right) {
          float rest[Strips::kMaxLanes];  // zero once the largest was met
          for_lanes(lanes, [&](int l) { rest[l] = dout[place + l]; });
          for (int64_t h = top; h < bottom; ++h)
            for (int64_t w = left; w < right; ++w) {
              const int64_t at = (h * width + w) * block;
              for_lanes(lanes, [&](int l) {
                const bool hit = x[at + l] == out[place + l];
                dx[at + l] += hit ? rest[l] : 0.0f;
                rest[l] = hit ? 0.0f : rest[l];
              });
            }
        });
  }
  template <class Lanes>
  void walk_avg(const float* dout, float* dx, Lanes lanes) const {
    const int64_t block = c_.block, width = width_;
    for_each_window([=](int64_t place, float divisor, int64_t top, int64_t bottom, int64_t left,
                        int64_t right) {
      float share[Strips::kMaxLanes];
      for_lanes(lanes, [&](int l) { share[l] = dout[place + l] / divisor; });
      for (int64_t h = top; h < bottom; ++h)
        for (int64_t w = left; w < right; ++w) {
          float* at = dx + (h * width + w) * block;
          for_lanes(lanes, [&](int l) { at[l] += share[l]; });
        }
    });
  }

  kernel::Slot x_, out_, dout_, dx_;
};

constexpr BySample kBySample{{"x", "out", "dout", "dx"}};

// What the op and its gradient have in common.
ir::OpRegistrar pooling(const char* type) {
  ir::OpRegistrar op(type);
  op.attr("kernel", ir::Ints{2, 2})
      .attr("stride", ir::Ints{2, 2})
      .attr("padding", ir::Ints{0, 0})
      .attr("type", "max")
      .attr("exclusive", true)
      .attr("ceil_mode", false)
      .attr("global", false)
      .attr("adaptive", false)
      .cost(cost);
  return op;
}

const ir::RegisterOp register_pool2d =
    pooling("pool2d").input("x").output("out").infer(infer).grad(grad).kernel(
        also_half<make_new<Pool2d>, kBySample>);

const ir::RegisterOp register_pool2d_grad = pooling("pool2d_grad")
                                                .input("x")
                                                .input("out")
                                                .input("dout")
                                                .output("dx")
                                                .infer(infer_grad)
                                                .kernel(also_half<make_new<Pool2dGrad>, kBySample>);

}  // namespace
}  // namespace fleetx::ops
