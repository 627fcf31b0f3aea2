// all_true: out = whether all xs, bool[1] each, are true, bool[1]; first = the place in the list of
// the first that is not, -1 where all are, i64[1]. No gradient.
#include "fleetx/kernel/op.h"

namespace fleetx::ops {
namespace {

void infer(ir::Infer& c) {
  for (size_t i = 0; i < c.count("xs"); ++i)
    c.check(c.in("xs", i).dtype == boolean && c.in("xs", i).shape == Shape{1}, c.show("xs", i),
            "; expected bool[1]");
  c.out("out") = {boolean, {1}};
  c.out("first") = {i64, {1}};
}

class AllTrueKernel final : public kernel::Kernel {
 public:
  explicit AllTrueKernel(kernel::Prepare& p)
      : xs_(p.inputs("xs")), out_(p.output("out")), first_(p.output("first")) {}

  void run(const kernel::Run& r) override {
    const auto found =
        std::find_if(xs_.begin(), xs_.end(), [&](kernel::Slot x) { return !*r.in<bool>(x); });
    *r.out<bool>(out_) = found == xs_.end();
    *r.out<int64_t>(first_) = found == xs_.end() ? -1 : found - xs_.begin();
  }

 private:
  std::vector<kernel::Slot> xs_;
  kernel::Slot out_, first_;
};

FLEETX_OP(all_true)
    .input("xs", ir::Arity::kMany)
    .output("out")
    .output("first")
    .infer(infer)
    .kernel<AllTrueKernel>();

}  // namespace
}  // namespace fleetx::ops
