// all_gather: out [ranks * n, ...] = the x [n, ...] of all `ranks` ranks of a group, in rank order.
// Any dtype. It has no gradient.
#include "fleetx/comm/groups.h"
#include "fleetx/kernel/op.h"

namespace fleetx {
namespace {

void infer(ir::Infer& c) {
  ir::TensorType out = c.in("x");
  c.check(out.kind == ir::VarKind::kDense && out.shape.rank() >= 1, c.show("x"),
          "; must be dense and have rows");
  const auto ranks = c.attr<int64_t>("ranks");
  c.check(ranks >= 1, "ranks is ", ranks, "; must be at least 1");
  out.shape[0] *= ranks;
  c.out("out") = out;
}

class AllGather final : public kernel::Kernel {
 public:
  explicit AllGather(kernel::Prepare& p)
      : group_(p.group(p.attr<std::string>("group"))),
        x_(p.input("x")),
        out_(p.output("out")),
        bytes_(static_cast<int64_t>(p.in("x").bytes())) {
    check_arg(group_.size() == p.attr<int64_t>("ranks"), ir::describe(p.op()),
              "the program is for ", p.attr<int64_t>("ranks"), " workers, the group has ",
              group_.size());
  }

  void run(const kernel::Run& r) override {
    group_.all_gather(r.raw(x_), r.raw(out_), bytes_, DType::kU8);
  }
  std::string_view implementation() const override { return group_.backend(); }

 private:
  comm::Communicator& group_;
  kernel::Slot x_, out_;
  int64_t bytes_;
};

FLEETX_OP(all_gather)
    .input("x")
    .output("out")
    .required_attr("group", ir::AttrType::kString)
    .required_attr("ranks", ir::AttrType::kInt)
    .infer(infer)
    .kernel<AllGather>();

}  // namespace
}  // namespace fleetx
