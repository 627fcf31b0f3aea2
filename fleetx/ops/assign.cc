// assign: out = x, a copy. Any dtype, any layout.   dx = dout.
#include <cstring>

#include "fleetx/base/threads.h"
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) { c.out("out") = c.in("x"); }

void grad(ir::Grad& g) { g.set("x", g.dout("out")); }

class AssignKernel final : public kernel::Kernel {
 public:
  explicit AssignKernel(kernel::Prepare& p)
      : x_(p.input_as_is("x")),
        out_(p.output("out", 0, p.in("x").layout)),
        bytes_(static_cast<int64_t>(p.in("x").bytes())) {}

  void run(const kernel::Run& r) override {
    const char* x = r.in<char>(x_);
    char* out = r.out<char>(out_);
    if (x == out) return;
    parallel_for(bytes_, 1 << 18, [=](int64_t begin, int64_t end) {
      std::memcpy(out + begin, x + begin, static_cast<size_t>(end - begin));
    });
  }

 private:
  kernel::Slot x_, out_;
  int64_t bytes_;
};

FLEETX_OP(assign).input("x").output("out").infer(infer).grad(grad).kernel<AssignKernel>().in_place(
    "out", "x");

}  // namespace
}  // namespace fleetx::ops
