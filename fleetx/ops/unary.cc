// The unary family: out = f(x), any shape, any layout.
//   relu max(x, 0); relu6 min(max(x, 0), 6); leaky_relu x, or alpha * x below 0;
//   elu x, or alpha * (exp(x) - 1) below 0; gelu x * Phi(x) by erf, or by tanh with
//   approximate=true; sigmoid, tanh; swish x * sigmoid(x); softplus log(1 + exp(x));
//   hard_sigmoid clip(slope * x + offset, 0, 1); hard_swish x * clip(x + 3, 0, 6) / 6;
//   exp log sqrt rsqrt reciprocal square abs sin cos asin acos atan erf; pow x to the power of
//   `factor`; clip min(max(x, min), max); sign floor ceil trunc round (halves away from 0)
// A NaN stays a NaN. Gradients are ops <name>_grad(x or out, dout) -> dx; `out` wherever the slope
// can be told from it, because then x need not be kept. sign and what
// makes whole numbers give zeros.
#include <limits>
#include <utility>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/element_loop.h"
#include "fleetx/ops/lib/math.h"

namespace fleetx::ops {
namespace {

// What a gradient keeps of the forward pass.
enum class Keeps { kX, kOut };
// The op's attributes, at most two, in the type of the elements.
template <class T>
struct Params {
  T a, b;
};
using AttrDefaults = std::vector<std::pair<std::string, ir::Attr>>;

// Formulas are stateless generic lambdas: f(x, params) and slope(kept, dout, params).
struct Bound {
  explicit Bound(const ir::Attrs& attrs) {
    double* next = &a;
    for (const auto& [name, value] : attrs) {
      if (value.type() == ir::AttrType::kFloat) *std::exchange(next, &b) = value.as<double>();
    }
  }
  template <class T>
  Params<T> as() const {
    return {convert<T>(a), convert<T>(b)};
  }
  // Bounds like 1e30 mean the largest integer there is.
  template <class T>
  static T convert(double value) {
    using Limits = std::numeric_limits<T>;
    if (std::is_integral_v<T> && value <= static_cast<double>(Limits::lowest()))
      return Limits::lowest();
    if (std::is_integral_v<T> && value >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(value);
  }
  double a = 0, b = 0;
};
template <class F>
struct Value : Bound {
  using Bound::Bound;
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(F{}(x, as<T>()));
  }
};
template <class F>
struct Slope : Bound {
  using Bound::Bound;
  template <class T>
  T operator()(T kept, T dout) const {
    return static_cast<T>(F{}(kept, dout, as<T>()));
  }
};

void infer(ir::Infer& c) {
  const DType dtype = c.in("x").dtype;
  const bool ints = make_element_loop(c.op().type(), c.op().attrs, i64) != nullptr;
  c.check(is_float(dtype) || (ints && (dtype == i32 || dtype == i64)), c.show("x"),
          "; expected a float", ints ? ", i32 or i64" : "");
  c.out("out") = c.in("x");
}

// With a negative alpha the gradient could not tell the sign of x from out.
void infer_alpha(ir::Infer& c) {
  c.check(c.attr<double>("alpha") >= 0, "alpha is ", c.attr<double>("alpha"), "; must be >= 0");
  infer(c);
}

void infer_clip(ir::Infer& c) {
  const auto low = c.attr<double>("min"), high = c.attr<double>("max");
  c.check(low <= high, "min is ", low, ", max is ", high, "; min must not be larger");
  infer(c);
}

void infer_grad(ir::Infer& c) {
  const std::string& kept = c.op().def->inputs[0].name;
  c.check(c.in(kept) == c.in("dout"), c.show(kept), ", but ", c.show("dout"));
  c.out("dx") = c.in("dout");
}

void grad(ir::Grad& g) {
  const std::string type = g.op().type() + "_grad";
  const std::string& kept = ir::op_def(type).inputs[0].name;
  g.set("x", g.op(type, {{kept, kept == "x" ? g.in("x") : g.out("out")}, {"dout", g.dout("out")}},
                  g.attrs(), {{"dx", g.dx("x")}}));
}

void zero_grad(ir::Grad& g) {
  g.set("x", g.op("fill_like", {{"x", g.dout("out")}}, {}, {{"out", g.dx("x")}}));
}

ir::Cost cost(const ir::Infer& c) {
  const auto& inputs = c.op().def->inputs;
  return {.flops = static_cast<double>(inputs.size()) *
                   static_cast<double>(c.in(inputs[0].name).shape.numel())};
}

void add_op(ir::OpRegistrar op, const AttrDefaults& attrs) {
  for (const auto& [name, fallback] : attrs) op.attr(name, fallback);
  const ir::RegisterOp registered(op.cost(cost).kernel(make_element_kernel).element_wise());
}

void add_forward(const std::string& type, MakeLoop loop, void (*derive)(ir::Grad&),
                 const AttrDefaults& attrs, void (*check)(ir::Infer&) = infer) {
  ir::OpRegistrar op(type);
  op.input("x").output("out").infer(check).grad(derive).in_place("out", "x");
  add_op(op, attrs);
  const RegisterLoop registered(type, loop);
}

void add_backward(const std::string& type, Keeps keeps, MakeLoop loop, const AttrDefaults& attrs) {
  const std::string kept = keeps == Keeps::kX ? "x" : "out";
  ir::OpRegistrar op(type + "_grad");
  op.input(kept).input("dout").output("dx").infer(infer_grad);
  op.in_place("dx", "dout").in_place("dx", kept);
  add_op(op, attrs);
  const RegisterLoop registered(type + "_grad", loop);
}

template <class F, class S>
void add(const std::string& type, F, Keeps keeps, S, const AttrDefaults& attrs = {},
         void (*check)(ir::Infer&) = infer) {
  add_forward(type, make_float_loop<Value<F>, 1>, grad, attrs, check);
  add_backward(type, keeps, make_float_loop<Slope<S>, 2>, attrs);
}

// Those that have a meaning for integers too.
template <class F, class S>
void add_number(const std::string& type, F, Keeps keeps, S, const AttrDefaults& attrs = {},
                void (*check)(ir::Infer&) = infer) {
  add_forward(type, make_loop<Value<F>, 1>, grad, attrs, check);
  add_backward(type, keeps, make_float_loop<Slope<S>, 2>, attrs);
}

template <class F>
void add_steps(const std::string& type, F) {
  add_forward(type, make_float_loop<Value<F>, 1>, zero_grad, {});
}

template <class T>
T normal_cdf(T x) {
  return T(0.5) * (1 + math::erf(x * T(0.7071067811865476)));
}
constexpr auto gelu = [](auto x, auto) { return x * normal_cdf(x); };
constexpr auto gelu_slope = [](auto x, auto dout, auto) { return dout * math::gelu_slope(x); };

template <class T>
T gelu_tanh_part(T x) {  // sqrt(2 / pi) * (x + 0.044715 x^3)
  return math::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x));
}
constexpr auto gelu_tanh = [](auto x, auto) {
  return decltype(x)(0.5) * x * (1 + gelu_tanh_part(x));
};
constexpr auto gelu_tanh_slope = [](auto x, auto dout, auto) {
  using T = decltype(x);
  const T t = gelu_tanh_part(x);
  const T inner = T(0.7978845608028654) * (1 + T(3 * 0.044715) * x * x);
  return dout * T(0.5) * ((1 + t) + x * (1 - t * t) * inner);
};

std::unique_ptr<ElementLoop> make_gelu(const ir::Attrs& attrs, DType dtype) {
  if (attrs.at("approximate").as<bool>())
    return make_float_loop<Value<decltype(gelu_tanh)>, 1>(attrs, dtype);
  return make_float_loop<Value<decltype(gelu)>, 1>(attrs, dtype);
}
std::unique_ptr<ElementLoop> make_gelu_grad(const ir::Attrs& attrs, DType dtype) {
  if (attrs.at("approximate").as<bool>())
    return make_float_loop<Slope<decltype(gelu_tanh_slope)>, 2>(attrs, dtype);
  return make_float_loop<Slope<decltype(gelu_slope)>, 2>(attrs, dtype);
}

void add_activations() {
  add_number(
      "relu", [](auto x, auto) { return x < 0 ? 0 : x; },  //
      Keeps::kOut, [](auto out, auto dout, auto) { return out > 0 ? dout : 0; });
  add(
      "relu6",
      [](auto x, auto) {
        const auto positive = x < 0 ? 0 : x;
        return positive > 6 ? 6 : positive;
      },
      Keeps::kOut, [](auto out, auto dout, auto) { return out > 0 && out < 6 ? dout : 0; });
  add(
      "leaky_relu", [](auto x, auto p) { return x < 0 ? p.a * x : x; },  //
      Keeps::kOut, [](auto out, auto dout, auto p) { return out > 0 ? dout : p.a * dout; },
      {{"alpha", 0.02}}, infer_alpha);
  add(
      "elu", [](auto x, auto p) { return x < 0 ? p.a * math::expm1(x) : x; },  //
      Keeps::kOut, [](auto out, auto dout, auto p) { return out < 0 ? dout * (out + p.a) : dout; },
      {{"alpha", 1.0}}, infer_alpha);
  add_forward("gelu", make_gelu, grad, {{"approximate", false}});
  add_backward("gelu", Keeps::kX, make_gelu_grad, {{"approximate", false}});
  add(
      "tanh", [](auto x, auto) { return math::tanh(x); },  //
      Keeps::kOut, [](auto out, auto dout, auto) { return dout * (1 - out * out); });
  add(
      "sigmoid", [](auto x, auto) { return math::sigmoid(x); },  //
      Keeps::kOut, [](auto out, auto dout, auto) { return dout * out * (1 - out); });
  add(
      "swish", [](auto x, auto) { return x * math::sigmoid(x); },  //
      Keeps::kX,
      [](auto x, auto dout, auto) {
        const auto s = math::sigmoid(x);
        return dout * (s + x * s * (1 - s));
      });
  add(
      "softplus",
      [](auto x, auto) { return (x < 0 ? 0 : x) + math::log1p(math::exp(-std::fabs(x))); },
      // The slope is sigmoid(x) = 1 - exp(-out).
      Keeps::kOut, [](auto out, auto dout, auto) { return -dout * math::expm1(-out); });
  add(
      "hard_sigmoid",
      [](auto x, auto p) {  // attributes come in the order of their names: offset, slope
        const auto line = p.b * x + p.a;
        const auto positive = line < 0 ? 0 : line;
        return positive > 1 ? 1 : positive;
      },
      Keeps::kOut, [](auto out, auto dout, auto p) { return out > 0 && out < 1 ? p.b * dout : 0; },
      {{"slope", 0.2}, {"offset", 0.5}});
  add(
      "hard_swish",
      [](auto x, auto) {
        const auto line = x + 3 < 0 ? 0 : x + 3;
        return x * (line > 6 ? 6 : line) * decltype(x)(1.0 / 6);
      },
      Keeps::kX,
      [](auto x, auto dout, auto) {
        const auto middle = dout * (2 * x + 3) * decltype(x)(1.0 / 6);
        return x > -3 ? (x < 3 ? middle : dout) : 0;
      });
}

void add_functions() {
  add(
      "exp", [](auto x, auto) { return math::exp(x); },  //
      Keeps::kOut, [](auto out, auto dout, auto) { return dout * out; });
  add(
      "log", [](auto x, auto) { return math::log(x); },  //
      Keeps::kX, [](auto x, auto dout, auto) { return dout / x; });
  add(
      "sqrt", [](auto x, auto) { return std::sqrt(x); },  //
      Keeps::kOut, [](auto out, auto dout, auto) { return dout / (2 * out); });
  add(
      "rsqrt", [](auto x, auto) { return 1 / std::sqrt(x); },  //
      Keeps::kOut, [](auto out, auto dout, auto) { return dout * out * out * out / -2; });
  add(
      "reciprocal", [](auto x, auto) { return 1 / x; },  //
      Keeps::kOut, [](auto out, auto dout, auto) { return -dout * out * out; });
  add_number(
      "square", [](auto x, auto) { return x * x; },  //
      Keeps::kX, [](auto x, auto dout, auto) { return 2 * x * dout; });
  add_number(
      "abs", [](auto x, auto) { return x < 0 ? -x : x + 0; },  // + 0: -0 becomes 0
      Keeps::kX, [](auto x, auto dout, auto) { return x > 0   ? dout
                                                      : x < 0 ? -dout
                                                              : 0; });
  add(
      "sin", [](auto x, auto) { return std::sin(x); },  //
      Keeps::kX, [](auto x, auto dout, auto) { return dout * std::cos(x); });
  add(
      "cos", [](auto x, auto) { return std::cos(x); },  //
      Keeps::kX, [](auto x, auto dout, auto) { return -dout * std::sin(x); });
  add(
      "erf", [](auto x, auto) { return math::erf(x); },  //
      Keeps::kX,
      [](auto x, auto dout, auto) {
        return dout * decltype(x)(1.1283791670955126) * math::exp(-x * x);
      });
  add(
      "asin", [](auto x, auto) { return std::asin(x); },  //
      Keeps::kX, [](auto x, auto dout, auto) { return dout / std::sqrt(1 - x * x); });
  add(
      "acos", [](auto x, auto) { return std::acos(x); },  //
      Keeps::kX, [](auto x, auto dout, auto) { return -dout / std::sqrt(1 - x * x); });
  add(
      "atan", [](auto x, auto) { return std::atan(x); },  //
      Keeps::kX, [](auto x, auto dout, auto) { return dout / (1 + x * x); });
  add(
      "pow", [](auto x, auto p) { return std::pow(x, p.a); },  //
      Keeps::kX, [](auto x, auto dout, auto p) { return dout * p.a * std::pow(x, p.a - 1); },
      {{"factor", 1.0}});
  add_number(
      "clip",
      [](auto x, auto p) {  // max, min
        const auto above = x < p.b ? p.b : x;
        return above > p.a ? p.a : above;
      },
      Keeps::kOut, [](auto out, auto dout, auto p) { return out > p.b && out < p.a ? dout : 0; },
      {{"min", -1.0}, {"max", 1.0}}, infer_clip);
  add_steps("sign", [](auto x, auto) { return x > 0 ? 1 : x < 0 ? -1 : x; });  // NaN stays
  add_steps("floor", [](auto x, auto) { return std::floor(x); });
  add_steps("ceil", [](auto x, auto) { return std::ceil(x); });
  add_steps("trunc", [](auto x, auto) { return std::trunc(x); });
  add_steps("round", [](auto x, auto) {
    // Not quite a half: the largest number below one half must not become 1.
    using T = decltype(x);
    constexpr T kHalf = T(0.5) - std::numeric_limits<T>::epsilon() / 4;
    return std::trunc(x + std::copysign(kHalf, x));
  });
}

const bool registered = [] {
  add_activations();
  add_functions();
  return true;
}();

}  // namespace
}  // namespace fleetx::ops
