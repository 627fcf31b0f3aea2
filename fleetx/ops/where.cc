// where: out = cond ? x : y, element by element; cond is bool, all of one shape.
// dx = cond ? dout : 0, dy = cond ? 0 : dout; only cond is kept.
#include "fleetx/base/simd.h"
#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"
#include "fleetx/ops/lib/in_f32.h"

namespace fleetx::ops {
namespace {

void check_cond(const ir::Infer& c, std::string_view like) {
  c.check(c.in("cond").dtype == boolean, c.show("cond"), "; expected bool");
  c.check(c.in("cond").shape == c.in(like).shape, c.show("cond"), ", but ", c.show(like));
}

void infer(ir::Infer& c) {
  check_cond(c, "x");
  c.check(c.in("x") == c.in("y"), c.show("x"), ", but ", c.show("y"));
  const DType dtype = c.in("x").dtype;
  c.check(is_float(dtype) || dtype == i32 || dtype == i64, c.show("x"),
          "; expected a float, i32 or i64");
  c.out("out") = c.in("x");
}

void infer_grad(ir::Infer& c) {
  check_cond(c, "dout");
  for (const char* slot : {"dx", "dy"})
    if (c.out_count(slot) > 0) c.out(slot) = c.in("dout");
}

void grad(ir::Grad& g) {
  std::vector<ir::Dest> dests;
  if (g.needs("x")) dests.emplace_back("dx", g.dx("x"));
  if (g.needs("y")) dests.emplace_back("dy", g.dx("y"));
  const ir::Results results =
      g.op("where_grad", {{"cond", g.in("cond")}, {"dout", g.dout("out")}}, {}, dests);
  if (g.needs("x")) g.set("x", results["dx"]);
  if (g.needs("y")) g.set("y", results["dy"]);
}

template <class T>
class WhereKernel final : public kernel::Kernel {
 public:
  explicit WhereKernel(kernel::Prepare& p)
      : cond_(p.input("cond")),
        x_(p.input("x")),
        y_(p.input("y")),
        out_(p.output("out")),
        n_(p.in("x").numel()) {}

  void run(const kernel::Run& r) override {
    const uint8_t* cond = r.in<uint8_t>(cond_);
    const T *x = r.in<T>(x_), *y = r.in<T>(y_);
    T* out = r.out<T>(out_);
    parallel_for(n_, 1 << 14, [=](int64_t begin, int64_t end) {
      vectorized([=] {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) {
          const T a = x[i], b = y[i];  // both are read, so that the loop has no branch
          out[i] = cond[i] != 0 ? a : b;
        }
      });
    });
  }

 private:
  kernel::Slot cond_, x_, y_, out_;
  int64_t n_;
};

template <class T>
class WhereGradKernel final : public kernel::Kernel {
 public:
  explicit WhereGradKernel(kernel::Prepare& p)
      : cond_(p.input("cond")),
        dout_(p.input("dout")),
        dx_(p.output("dx")),
        dy_(p.output("dy")),
        n_(p.in("dout").numel()) {}

  void run(const kernel::Run& r) override {
    // dy first: dx may be the memory of dout.
    if (dy_) select(r, dy_, 0);
    if (dx_) select(r, dx_, 1);
  }

 private:
  void select(const kernel::Run& r, kernel::Slot to, uint8_t wanted) const {
    const uint8_t* cond = r.in<uint8_t>(cond_);
    const T* dout = r.in<T>(dout_);
    T* d = r.out<T>(to);
    parallel_for(n_, 1 << 14, [=](int64_t begin, int64_t end) {
      vectorized([=] {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) {
          const T value = dout[i];
          d[i] = cond[i] == wanted ? value : T{0};
        }
      });
    });
  }

  kernel::Slot cond_, dout_, dx_, dy_;
  int64_t n_;
};

std::unique_ptr<kernel::Kernel> make(kernel::Prepare& p) {
  switch (p.in("x").dtype) {
    case DType::kF64: return std::make_unique<WhereKernel<double>>(p);
    case DType::kI32: return std::make_unique<WhereKernel<int32_t>>(p);
    case DType::kI64: return std::make_unique<WhereKernel<int64_t>>(p);
    default: return std::make_unique<WhereKernel<float>>(p);
  }
}

std::unique_ptr<kernel::Kernel> make_grad(kernel::Prepare& p) {
  if (p.in("dout").dtype == f64) return std::make_unique<WhereGradKernel<double>>(p);
  return std::make_unique<WhereGradKernel<float>>(p);
}

FLEETX_OP(where)
    .input("cond")
    .input("x")
    .input("y")
    .output("out")
    .infer(infer)
    .grad(grad)
    .kernel(also_half<make>)
    .in_place("out", "x")
    .in_place("out", "y");

FLEETX_OP(where_grad)
    .input("cond")
    .input("dout")
    .output("dx", ir::Arity::kOptional)
    .output("dy", ir::Arity::kOptional)
    .infer(infer_grad)
    .kernel(also_half<make_grad>)
    .in_place("dx", "dout");

}  // namespace
}  // namespace fleetx::ops
