// The reductions, over the dimensions `dim` (empty: all, which gives shape [1]); keep_dim keeps
// them as ones:
//   reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod     floats and integers
//   reduce_all, reduce_any                                           bool
//   mean        the mean of all elements, shape [1]
//   sum_to      x summed down to `shape`, whose dimensions align with x's from `axis` (-1: the last
//               ones); -1 in `shape` means as in x. The reverse of broadcasting.
// Floats are added in f64. A NaN makes max and min NaN.
// Gradients: dout is spread over dx: sum 1, mean 1/count, max and min where x equals out, prod the
// product of the other elements. Sum and mean need only the shape of x.
#include <limits>

#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/broadcast.h"
#include "fleetx/ops/lib/in_f32.h"
#include "fleetx/ops/lib/reduction.h"

namespace fleetx::ops {
namespace {

template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

struct Sum {
  template <class T>
  using Acc = Wide<T>;
  template <class A>
  static A start() {
    return 0;
  }
  template <class A, class V>
  static A add(A a, V v) {
    return a + static_cast<A>(v);
  }
  template <class Out, class A>
  static Out finish(A a, int64_t) {
    return static_cast<Out>(a);
  }
};
struct Mean : Sum {
  template <class Out, class A>
  static Out finish(A a, int64_t count) {
    return static_cast<Out>(a / static_cast<A>(count));
  }
};
struct Prod : Sum {
  template <class A>
  static A start() {
    return 1;
  }
  template <class A, class V>
  static A add(A a, V v) {
    return a * static_cast<A>(v);
  }
};
struct Max : Sum {
  template <class T>
  using Acc = T;
  template <class A>
  static A start() {
    return std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity()
                                                : std::numeric_limits<A>::lowest();
  }
  template <class A>
  static A add(A a, A v) {
    const A larger = v > a ? v : a;
    return v != v ? v : larger;
  }
};
struct Min : Max {
  template <class A>
  static A start() {
    return std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity()
                                                : std::numeric_limits<A>::max();
  }
  template <class A>
  static A add(A a, A v) {
    const A smaller = v < a ? v : a;
    return v != v ? v : smaller;
  }
};
struct All : Max {
  template <class A>
  static A start() {
    return true;
  }
  template <class A>
  static A add(A a, A v) {
    return a && v;
  }
};
struct Any : Max {
  template <class A>
  static A start() {
    return false;
  }
  template <class A>
  static A add(A a, A v) {
    return a || v;
  }
};

// Which dimensions of x disappear; `args` is an Infer or a Prepare.
template <class Args>
std::vector<bool> reduced_dims(const Args& args, const Shape& x) {
  const ir::Op& op = args.op();
  const auto rank = static_cast<size_t>(x.rank());
  if (op.attrs.contains("shape")) {
    const std::vector<int64_t> target =
        align_dims(op.attr<Shape>("shape"), x.rank(), op.attr<int64_t>("axis"));
    std::vector<bool> out(rank);
    for (size_t d = 0; d < target.size(); ++d)
      out[d] = target[d] == 1 && x[static_cast<int>(d)] != 1;
    return out;
  }
  const ir::Ints dims = op.attrs.contains("dim") ? op.attr<ir::Ints>("dim") : ir::Ints{};
  std::vector<bool> out(rank, dims.empty());
  for (const int64_t dim : dims) out[static_cast<size_t>(normalize_axis(dim, x.rank()))] = true;
  return out;
}

void check_dims(const ir::Infer& c) {
  const int rank = c.in("x").shape.rank();
  const auto dims = c.attr<ir::Ints>("dim");
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (const int64_t dim : dims) {
    const int d = normalize_axis(dim, rank);
    c.check(d >= 0 && d < rank && !seen[static_cast<size_t>(d)], "dim is ", ir::Attr(dims),
            ", but ", c.show("x"), "; each must name another dimension of it");
    seen[static_cast<size_t>(d)] = true;
  }
}

Shape reduced_shape(const ir::Infer& c) {
  const Shape& x = c.in("x").shape;
  const std::vector<bool> gone = reduced_dims(c, x);
  const bool keep = c.attr<bool>("keep_dim");
  Shape out;
  for (int d = 0; d < x.rank(); ++d) {
    if (!gone[static_cast<size_t>(d)])
      out.push_back(x[d]);
    else if (keep)
      out.push_back(1);
  }
  if (out.rank() == 0) out.push_back(1);
  return out;
}

void check_number(const ir::Infer& c) {
  const DType dtype = c.in("x").dtype;
  c.check(is_float(dtype) || dtype == i32 || dtype == i64, c.show("x"),
          "; expected a float, i32 or i64");
}

void infer_reduce(ir::Infer& c) {
  check_number(c);
  check_dims(c);
  c.out("out") = {c.in("x").dtype, reduced_shape(c)};
}

void infer_bool(ir::Infer& c) {
  c.check(c.in("x").dtype == boolean, c.show("x"), "; expected bool");
  check_dims(c);
  c.out("out") = {boolean, reduced_shape(c)};
}

void infer_mean(ir::Infer& c) {
  check_number(c);
  c.out("out") = {c.in("x").dtype, {1}};
}

void infer_sum_to(ir::Infer& c) {
  check_number(c);
  const Shape& x = c.in("x").shape;
  auto shape = c.attr<Shape>("shape");
  const auto axis = c.attr<int64_t>("axis");
  const int64_t before = axis < 0 ? x.rank() - shape.rank() : axis;
  bool fits = !align_dims(shape, x.rank(), axis).empty() || x.rank() == 0;
  for (int d = 0; fits && d < shape.rank() && before + d < x.rank(); ++d) {
    const int64_t have = x[static_cast<int>(before) + d];
    if (shape[d] == -1) shape[d] = have;
    fits = shape[d] == have || shape[d] == 1;
  }
  c.check(fits, c.show("x"), "; it cannot be summed to shape ", c.attr<Shape>("shape"),
          " with axis=", axis);
  c.out("out") = {c.in("x").dtype, shape};
}

void infer_grad(ir::Infer& c) { c.out("dx") = c.in("x"); }

ir::Cost cost(const ir::Infer& c) {
  return {.flops = static_cast<double>(c.in("x").shape.numel())};
}

// reduce_max_grad(x, out, dout), and so on; `out` only where the formula has it.
void grad(ir::Grad& g) {
  const std::string type = g.op().type() + "_grad";
  const bool wants_out = ir::op_def(type).inputs.size() == 3;
  std::vector<ir::Arg> args{{"x", g.in("x")}, {"dout", g.dout("out")}};
  if (wants_out) args.emplace_back("out", g.out("out"));
  g.set("x", g.op(type, args, g.attrs(), {{"dx", g.dx("x")}}));
}

template <class R, class T>
class ReduceKernel final : public kernel::Kernel {
 public:
  using Acc = typename R::template Acc<T>;

  explicit ReduceKernel(kernel::Prepare& p) : out_(p.output("out")) {
    const kernel::Desc& x = p.in("x");
    const std::vector<bool> gone = reduced_dims(p, x.shape);
    // Zeros in the padding do not change a sum over everything.
    const bool any_layout = !p.in("x").layout.is_plain() && std::is_same_v<R, Sum> &&
                            p.out("out").numel() == 1 &&
                            std::find(gone.begin(), gone.end(), false) == gone.end();
    x_ = any_layout ? p.input_as_is("x") : p.input("x");
    reduction_ = any_layout ? Reduction({x.stored()}, {true}) : Reduction(x.shape, gone);
    const auto bytes = static_cast<size_t>(reduction_.partials()) * sizeof(Acc);
    if (bytes > 0) {
      a_ = p.scratch(bytes);
      b_ = p.scratch(bytes);
    }
  }

  void run(const kernel::Run& r) override {
    reduction_.template run<R>(r.in<T>(x_), r.out<Acc>(a_), r.out<Acc>(b_), r.out<T>(out_));
  }

 private:
  kernel::Slot x_, out_, a_, b_;
  Reduction reduction_;
};

// Walks x beside the results it went into.
Broadcast spread(const kernel::Prepare& p) {
  const Shape& x = p.in("x").shape;
  const std::vector<bool> gone = reduced_dims(p, x);
  Shape kept = x;
  for (int d = 0; d < x.rank(); ++d)
    if (gone[static_cast<size_t>(d)]) kept[d] = 1;
  return Broadcast(x, x, kept, -1, Layout::plain());
}

// dx = dout / count (sum: 1).
template <class T>
class SpreadKernel final : public kernel::Kernel {
 public:
  explicit SpreadKernel(kernel::Prepare& p)
      : dout_(p.input("dout")), dx_(p.output("dx")), walk_(spread(p)) {
    const Shape& x = p.in("x").shape;
    const std::string& type = p.op().type();
    if (type == "mean_grad" || type == "reduce_mean_grad")
      factor_ = 1.0 / static_cast<double>(Reduction(x, reduced_dims(p, x)).count());
  }

  void run(const kernel::Run& r) override {
    T* dx = r.out<T>(dx_);
    const auto factor = static_cast<T>(factor_);
    walk_.run([factor](T, T dout) { return factor * dout; }, dx, r.in<T>(dout_), dx);
  }

 private:
  kernel::Slot dout_, dx_;
  Broadcast walk_;
  double factor_ = 1.0;
};

// dx = dout where x is the maximum (minimum).
template <class T>
class SelectGradKernel final : public kernel::Kernel {
 public:
  explicit SelectGradKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        out_(p.input("out")),
        dout_(p.input("dout")),
        dx_(p.output("dx")),
        walk_(spread(p)) {}

  void run(const kernel::Run& r) override {
    T* dx = r.out<T>(dx_);
    walk_.run([](T x, T best) { return x == best ? T{1} : T{0}; }, r.in<T>(x_), r.in<T>(out_), dx);
    walk_.run([](T chosen, T dout) { return chosen != 0 ? dout : T{0}; }, dx, r.in<T>(dout_), dx);
  }

 private:
  kernel::Slot x_, out_, dout_, dx_;
  Broadcast walk_;
};

// The product without its zeros, and how many there are: what prod's gradient is made of.
struct Factors {
  double product;
  int64_t zeros;
};
struct CollectFactors {
  template <class A>
  static A start() {
    return {1.0, 0};
  }
  template <class T>
  static Factors add(Factors a, T v) {
    return v == 0 ? Factors{a.product, a.zeros + 1} : Factors{a.product * v, a.zeros};
  }
  static Factors add(Factors a, Factors b) { return {a.product * b.product, a.zeros + b.zeros}; }
  template <class Out>
  static Out finish(Factors a, int64_t) {
    return a;
  }
};

template <class T>
class ProdGradKernel final : public kernel::Kernel {
 public:
  explicit ProdGradKernel(kernel::Prepare& p)
      : x_(p.input("x")),
        dout_(p.input("dout")),
        dx_(p.output("dx")),
        reduction_(p.in("x").shape, reduced_dims(p, p.in("x").shape)),
        walk_(spread(p)) {
    const auto bytes = static_cast<size_t>(reduction_.partials()) * sizeof(Factors);
    a_ = p.scratch(bytes);
    b_ = p.scratch(bytes);
    factors_ = p.scratch(static_cast<size_t>(p.in("dout").numel()) * sizeof(Factors));
  }

  void run(const kernel::Run& r) override {
    const T* x = r.in<T>(x_);
    T* dx = r.out<T>(dx_);
    Factors* factors = r.out<Factors>(factors_);
    reduction_.run<CollectFactors>(x, r.out<Factors>(a_), r.out<Factors>(b_), factors);
    const auto others = [](T value, Factors f) {
      if (f.zeros == 0) return static_cast<T>(f.product / value);
      return f.zeros == 1 && value == 0 ? static_cast<T>(f.product) : T{0};
    };
    walk_.run(others, x, factors, dx);
    walk_.run([](T product, T dout) { return product * dout; }, dx, r.in<T>(dout_), dx);
  }

 private:
  kernel::Slot x_, dout_, dx_, a_, b_, factors_;
  Reduction reduction_;
  Broadcast walk_;
};

template <class R>
std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kF64: return std::make_unique<ReduceKernel<R, double>>(p);
    case DType::kI32: return std::make_unique<ReduceKernel<R, int32_t>>(p);
    case DType::kI64: return std::make_unique<ReduceKernel<R, int64_t>>(p);
    default: return std::make_unique<ReduceKernel<R, float>>(p);
  }
}

// 16-bit floats are read as they stand: what is large about a sum is what it reads.
template <class R>
std::unique_ptr<kernel::Kernel> make_sum(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kBF16: return std::make_unique<ReduceKernel<R, BFloat16>>(p);
    case DType::kF16: return std::make_unique<ReduceKernel<R, Half>>(p);
    default: return make<R>(p);
  }
}

template <class R>
std::unique_ptr<kernel::Kernel> make_bool(kernel::Prepare& p) {
  return std::make_unique<ReduceKernel<R, bool>>(p);
}

template <template <class> class K>
std::unique_ptr<kernel::Kernel> make_grad(kernel::Prepare& p) {
  if (p.in("dout").dtype == f64) return std::make_unique<K<double>>(p);
  return std::make_unique<K<float>>(p);
}

ir::OpRegistrar reduce(const char* type, MakeKernel make_kernel) {
  ir::OpRegistrar op(type);
  op.input("x").output("out").attr("dim", ir::Ints{}).attr("keep_dim", false);
  op.infer(infer_reduce).cost(cost).kernel(make_kernel);
  return op;
}

ir::OpRegistrar reduce_grad(const char* type, MakeKernel make_kernel) {
  ir::OpRegistrar op(type);
  op.input("x").input("dout").output("dx").attr("dim", ir::Ints{}).attr("keep_dim", false);
  op.infer(infer_grad).kernel(make_kernel);
  return op;
}

const ir::RegisterOp ops[] = {
    reduce("reduce_sum", make_sum<Sum>).grad(grad),
    reduce_grad("reduce_sum_grad", also_half<make_grad<SpreadKernel>>).shape_only("x"),
    reduce("reduce_mean", make_sum<Mean>).grad(grad),
    reduce_grad("reduce_mean_grad", also_half<make_grad<SpreadKernel>>).shape_only("x"),
    reduce("reduce_max", also_half<make<Max>>).grad(grad),
    reduce_grad("reduce_max_grad", also_half<make_grad<SelectGradKernel>>).input("out"),
    reduce("reduce_min", also_half<make<Min>>).grad(grad),
    reduce_grad("reduce_min_grad", also_half<make_grad<SelectGradKernel>>).input("out"),
    reduce("reduce_prod", also_half<make<Prod>>).grad(grad),
    reduce_grad("reduce_prod_grad", also_half<make_grad<ProdGradKernel>>),
    reduce("reduce_all", make_bool<All>).infer(infer_bool),
    reduce("reduce_any", make_bool<Any>).infer(infer_bool),
};

FLEETX_OP(mean)
    .input("x")
    .output("out")
    .infer(infer_mean)
    .grad(grad)
    .cost(cost)
    .kernel(make_sum<Mean>);
FLEETX_OP(mean_grad)
    .input("x")
    .input("dout")
    .output("dx")
    .infer(infer_grad)
    .kernel(also_half<make_grad<SpreadKernel>>)
    .shape_only("x");

FLEETX_OP(sum_to)
    .input("x")
    .output("out")
    .required_attr("shape", ir::AttrType::kInts)
    .attr("axis", -1)
    .infer(infer_sum_to)
    .grad(grad)
    .cost(cost)
    .kernel(make_sum<Sum>);
FLEETX_OP(sum_to_grad)
    .input("x")
    .input("dout")
    .output("dx")
    .required_attr("shape", ir::AttrType::kInts)
    .attr("axis", -1)
    .infer(infer_grad)
    .kernel(also_half<make_grad<SpreadKernel>>)
    .shape_only("x");

}  // namespace
}  // namespace fleetx::ops
