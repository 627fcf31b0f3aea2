// The binary family: out = f(x, y) with broadcasting (see broadcast.h for `axis`). Floats and
// integers; x and y have one dtype. 16-bit floats are computed in f32.
//   elementwise_add       x + y, with act="relu" max(x + y, 0)
//   elementwise_sub       x - y
//   elementwise_mul       x * y
//   elementwise_div       x / y; integers are cut, and give 0 where y is 0
//   elementwise_max, _min a NaN in x or y gives a NaN
//   elementwise_pow       x to the power of y
//   elementwise_mod       x - y * floor(x / y): has the sign of y; integers: 0 where y is 0
//   elementwise_floordiv  floor(x / y); integers: 0 where y is 0
// Gradients are other ops of this family, followed by sum_to for an input that was broadcast; add
// and sub keep nothing of the forward pass (with relu: out), mul keeps x and y, div y and out.
#include <cmath>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/broadcast.h"
#include "fleetx/ops/lib/element_loop.h"
#include "fleetx/ops/lib/half.h"

namespace fleetx::ops {
namespace {

// Dividing the smallest integer by -1 overflows and traps, as dividing by 0 does.
template <class T>
T cut_division(T x, T y) {
  using Unsigned = std::make_unsigned_t<T>;
  if (y == 0) return 0;
  if (y == -1) return static_cast<T>(Unsigned{0} - static_cast<Unsigned>(x));
  return x / y;
}

template <class T>
T floor_division(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::floor(x / y);
  } else {
    const T q = cut_division(x, y);
    return y != 0 && y != -1 && q * y != x && ((x < 0) != (y < 0)) ? q - 1 : q;
  }
}

struct Formula {
  explicit Formula(const ir::Attrs&) {}
};
struct Add : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    return x + y;
  }
};
struct AddRelu : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    const T sum = x + y;
    return sum < 0 ? 0 : sum;
  }
};
struct Sub : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    return x - y;
  }
};
struct Mul : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    return x * y;
  }
};
struct Div : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>)
      return x / y;
    else
      return cut_division(x, y);
  }
};
struct Max : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    const T larger = x < y ? y : x;  // x where one is NaN
    return y != y ? y : larger;
  }
};
struct Min : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    const T smaller = y < x ? y : x;
    return y != y ? y : smaller;
  }
};
struct Pow : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    return static_cast<T>(std::pow(x, y));
  }
};
struct Mod : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T rest = std::fmod(x, y);
      return rest != 0 && ((rest < 0) != (y < 0)) ? rest + y : rest;
    } else {
      return y == 0 || y == -1 ? 0 : x - y * floor_division(x, y);
    }
  }
};
struct FloorDiv : Formula {
  using Formula::Formula;
  template <class T>
  T operator()(T x, T y) const {
    return floor_division(x, y);
  }
};

void infer(ir::Infer& c) {
  const DType dtype = c.in("x").dtype;
  c.check(is_float(dtype) || dtype == i32 || dtype == i64, c.show("x"),
          "; expected a float, i32 or i64");
  c.check(c.in("y").dtype == dtype, c.show("x"), ", but ", c.show("y"));
  c.out("out") = {dtype, broadcast_shape(c)};
}

void infer_add(ir::Infer& c) {
  const auto act = c.attr<std::string>("act");
  c.check(act.empty() || act == "relu", "act is \"", act, "\"; expected \"\" or \"relu\"");
  infer(c);
}

ir::Cost cost(const ir::Infer& c) {
  return {.flops = static_cast<double>(c.out("out").shape.numel())};
}

// `gradient` has out's shape; an input that was broadcast gets the sum.
ir::Var summed_to(ir::Grad& g, const std::string& slot, const ir::Var& gradient) {
  const Shape& shape = g.in(slot).shape();
  if (shape == g.out("out").shape()) return gradient;
  const int64_t axis = slot == "y" ? g.attr<int64_t>("axis") : -1;
  return g.op("sum_to", {{"x", gradient}}, {{"shape", shape}, {"axis", axis}},
              {{"out", g.dx(slot)}});
}

// The last op of a gradient. `other` is aligned like y where it is y.
void set_by(ir::Grad& g, const std::string& slot, std::string_view type, const ir::Var& left,
            const ir::Var& right, int64_t axis = -1) {
  std::vector<ir::Dest> dests;
  if (g.in(slot).shape() == g.out("out").shape()) dests.emplace_back("out", g.dx(slot));
  const ir::Var full = g.op(type, {{"x", left}, {"y", right}}, {{"axis", axis}}, dests);
  g.set(slot, summed_to(g, slot, full));
}

void grad_add(ir::Grad& g) {
  ir::Var dout = g.dout("out");
  if (g.attr<std::string>("act") == "relu")
    dout = g.op("relu_grad", {{"out", g.out("out")}, {"dout", dout}});
  for (const char* slot : {"x", "y"})
    if (g.needs(slot)) g.set(slot, summed_to(g, slot, dout));
}

void grad_sub(ir::Grad& g) {
  const ir::Var dout = g.dout("out");
  if (g.needs("x")) g.set("x", summed_to(g, "x", dout));
  if (g.needs("y")) g.set("y", summed_to(g, "y", g.op("scale", {{"x", dout}}, {{"scale", -1.0}})));
}

void grad_mul(ir::Grad& g) {
  const ir::Var dout = g.dout("out");
  if (g.needs("x")) set_by(g, "x", "elementwise_mul", dout, g.in("y"), g.attr<int64_t>("axis"));
  if (g.needs("y")) set_by(g, "y", "elementwise_mul", dout, g.in("x"));
}

// dx = dout / y, dy = -dout / y * out
void grad_div(ir::Grad& g) {
  const int64_t axis = g.attr<int64_t>("axis");
  const ir::Var quotient =
      g.op("elementwise_div", {{"x", g.dout("out")}, {"y", g.in("y")}}, {{"axis", axis}});
  if (g.needs("x")) g.set("x", summed_to(g, "x", quotient));
  if (!g.needs("y")) return;
  set_by(g, "y", "elementwise_mul", g.op("scale", {{"x", quotient}}, {{"scale", -1.0}}),
         g.out("out"));
}

// The gradient goes to the input that won; to y where both are equal.
void grad_select(ir::Grad& g) {
  const ir::Var dout = g.dout("out");
  const char* wins = g.op().type() == "elementwise_max" ? "greater_than" : "less_than";
  const ir::Var x_won = g.op("cast",
                             {{"x", g.op(wins, {{"x", g.in("x")}, {"y", g.in("y")}},
                                         {{"axis", g.attr<int64_t>("axis")}})}},
                             {{"dtype", dout.dtype()}});
  const ir::Var to_x = g.op("elementwise_mul", {{"x", dout}, {"y", x_won}});
  if (g.needs("x")) g.set("x", summed_to(g, "x", to_x));
  if (g.needs("y")) set_by(g, "y", "elementwise_sub", dout, to_x);
}

// dx = dout * y * x^(y - 1), dy = dout * out * log(x)
void grad_pow(ir::Grad& g) {
  const int64_t axis = g.attr<int64_t>("axis");
  const ir::Var dout = g.dout("out"), x = g.in("x"), y = g.in("y");
  if (g.needs("x")) {
    const ir::Var less = g.op("scale", {{"x", y}}, {{"bias", -1.0}});
    const ir::Var power = g.op("elementwise_pow", {{"x", x}, {"y", less}}, {{"axis", axis}});
    const ir::Var slope = g.op("elementwise_mul", {{"x", power}, {"y", y}}, {{"axis", axis}});
    set_by(g, "x", "elementwise_mul", dout, slope);
  }
  if (g.needs("y")) {
    const ir::Var scaled = g.op("elementwise_mul", {{"x", dout}, {"y", g.out("out")}});
    set_by(g, "y", "elementwise_mul", scaled, g.op("log", {{"x", x}}));
  }
}

// Equal shapes pass a blocked layout through. A smaller input is read row-major, which fits any
// layout of the larger one whose inner dimension it has as neighbours or not at all.
Layout common_layout(const kernel::Prepare& p, int64_t axis, bool keeps_zero) {
  const kernel::Desc &x = p.in("x"), &y = p.in("y");
  const Shape& out = p.out("out").shape;
  for (const kernel::Desc* input : {&x, &y}) {
    if (input->layout.is_plain() || input->shape != out) continue;
    if (x.shape == y.shape) {
      if (keeps_zero || !input->layout.has_padding(out)) return input->layout;
    } else if (!input->layout.has_padding(out) &&
               Broadcast(out, x.shape, y.shape, axis, input->layout).contiguous()) {
      return input->layout;
    }
  }
  return Layout::plain();
}

template <class F, class T>
class BinaryKernel final : public kernel::Kernel {
 public:
  explicit BinaryKernel(kernel::Prepare& p) : f_(p.op().attrs) {
    const auto axis = p.attr<int64_t>("axis");
    const Shape& out = p.out("out").shape;
    const Layout layout = common_layout(p, axis, f_(T{0}, T{0}) == T{0});
    const auto bind = [&](const char* slot) {
      return p.input(slot, 0, p.in(slot).shape == out ? layout : Layout::plain());
    };
    x_ = bind("x");
    y_ = bind("y");
    out_ = p.output("out", 0, layout);
    walk_ = Broadcast(out, p.in("x").shape, p.in("y").shape, axis, layout);
  }

  void run(const kernel::Run& r) override {
    walk_.run(f_, r.in<T>(x_), r.in<T>(y_), r.out<T>(out_));
  }

 private:
  F f_;
  kernel::Slot x_, y_, out_;
  Broadcast walk_;
};

// The op's loop for f32 on pieces of rows that are converted in the first-level cache.
class HalfBinaryKernel final : public kernel::Kernel {
 public:
  explicit HalfBinaryKernel(kernel::Prepare& p)
      : dtype_(p.in("x").dtype), loop_(make_element_loop(p.op().type(), p.op().attrs, f32)) {
    const auto axis = p.attr<int64_t>("axis");
    const Shape& out = p.out("out").shape;
    const Layout layout = common_layout(p, axis, loop_->keeps_zero());
    const auto bind = [&](const char* slot) {
      return p.input(slot, 0, p.in(slot).shape == out ? layout : Layout::plain());
    };
    x_ = bind("x");
    y_ = bind("y");
    out_ = p.output("out", 0, layout);
    walk_ = Broadcast(out, p.in("x").shape, p.in("y").shape, axis, layout);
  }

  void run(const kernel::Run& r) override {
    const auto *x = r.in<uint16_t>(x_), *y = r.in<uint16_t>(y_);
    auto* out = r.out<uint16_t>(out_);
    const bool x_varies = walk_.dims().back().x != 0, y_varies = walk_.dims().back().y != 0;
    walk_.for_each_rows([&](const Broadcast::Rows& rows) {
      alignas(64) float blocks[2][kBlock];
      const void* wide[] = {blocks[0], blocks[1]};
      for (int64_t row = 0; row < rows.rows; ++row)
        for (int64_t at = 0; at < rows.columns; at += kBlock) {
          const int64_t n = std::min(kBlock, rows.columns - at);
          read(x + rows.x + row * rows.x_row, x_varies, at, n, blocks[0]);
          read(y + rows.y + row * rows.y_row, y_varies, at, n, blocks[1]);
          loop_->run(wide, blocks[0], n);
          narrow(blocks[0], dtype_, out + rows.out + row * rows.columns + at, n);
        }
    });
  }

 private:
  static constexpr int64_t kBlock = 1024;

  void read(const uint16_t* row, bool varies, int64_t at, int64_t n, float* to) const {
    if (varies) return widen(dtype_, row + at, to, n);
    widen(dtype_, row, to, 1);
    std::fill(to + 1, to + n, to[0]);
  }

  DType dtype_;
  std::unique_ptr<ElementLoop> loop_;
  kernel::Slot x_, y_, out_;
  Broadcast walk_;
};

template <class F>
std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kF16:
    case DType::kBF16: return std::make_unique<HalfBinaryKernel>(p);
    case DType::kF64: return std::make_unique<BinaryKernel<F, double>>(p);
    case DType::kI32: return std::make_unique<BinaryKernel<F, int32_t>>(p);
    case DType::kI64: return std::make_unique<BinaryKernel<F, int64_t>>(p);
    default: return std::make_unique<BinaryKernel<F, float>>(p);
  }
}

bool with_relu(const ir::Attrs& attrs) { return attrs.at("act").as<std::string>() == "relu"; }

std::unique_ptr<kernel::Kernel> make_add(kernel::Prepare& p) {
  return with_relu(p.op().attrs) ? make<AddRelu>(p) : make<Add>(p);
}

std::unique_ptr<ElementLoop> make_add_loop(const ir::Attrs& attrs, DType dtype) {
  return (with_relu(attrs) ? make_loop<AddRelu, 2> : make_loop<Add, 2>)(attrs, dtype);
}

ir::OpRegistrar binary(const char* type,
                       std::unique_ptr<kernel::Kernel> (*make_kernel)(kernel::Prepare&)) {
  ir::OpRegistrar op(type);
  op.input("x").input("y").output("out").attr("axis", -1).infer(infer).cost(cost);
  op.kernel(make_kernel).in_place("out", "x").in_place("out", "y").element_wise();
  return op;
}

const ir::RegisterOp ops[] = {
    binary("elementwise_add", make_add).attr("act", "").infer(infer_add).grad(grad_add),
    binary("elementwise_sub", make<Sub>).grad(grad_sub),
    binary("elementwise_mul", make<Mul>).grad(grad_mul),
    binary("elementwise_div", make<Div>).grad(grad_div),
    binary("elementwise_max", make<Max>).grad(grad_select),
    binary("elementwise_min", make<Min>).grad(grad_select),
    binary("elementwise_pow", make<Pow>).grad(grad_pow),
    binary("elementwise_mod", make<Mod>),
    binary("elementwise_floordiv", make<FloorDiv>),
};
const RegisterLoop loops[] = {
    {"elementwise_add", make_add_loop},
    {"elementwise_sub", make_loop<Sub, 2>},
    {"elementwise_mul", make_loop<Mul, 2>},
    {"elementwise_div", make_loop<Div, 2>},
    {"elementwise_max", make_loop<Max, 2>},
    {"elementwise_min", make_loop<Min, 2>},
    {"elementwise_pow", make_loop<Pow, 2>},
    {"elementwise_mod", make_loop<Mod, 2>},
    {"elementwise_floordiv", make_loop<FloorDiv, 2>},
};

}  // namespace
}  // namespace fleetx::ops
