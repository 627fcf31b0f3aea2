// broadcast_from: out = xs of the rank `root` of a group, in place: out are the same variables as
// xs. Startup programs of several workers end with it, so that all begin with the same values.
#include "fleetx/comm/groups.h"
#include "fleetx/kernel/op.h"

namespace fleetx {
namespace {

void infer(ir::Infer& c) {
  c.check(c.out_count("out") == c.count("xs"), "has ", c.count("xs"), " inputs and ",
          c.out_count("out"), " outputs");
  c.check(c.attr<int64_t>("root") >= 0, "root is ", c.attr<int64_t>("root"));
  for (size_t i = 0; i < c.count("xs"); ++i) {
    c.check(c.in("xs", i).kind == ir::VarKind::kDense, c.show("xs", i), "; must be dense");
    c.out("out", i) = c.in("xs", i);
  }
}

class BroadcastFrom final : public kernel::Kernel {
 public:
  explicit BroadcastFrom(kernel::Prepare& p)
      : group_(p.group(p.attr<std::string>("group"))),
        root_(static_cast<int>(p.attr<int64_t>("root"))) {
    // Row-major, in which all CPUs agree. As bytes: every dtype travels.
    xs_ = p.inputs("xs");
    p.outputs("out");
    for (size_t i = 0; i < p.count("xs"); ++i)
      bytes_.push_back(static_cast<int64_t>(p.in("xs", i).bytes()));
  }

  void run(const kernel::Run& r) override {
    if (group_.size() == 1) return;
    for (size_t i = 0; i < xs_.size(); ++i)
      group_.broadcast(r.raw(xs_[i]), bytes_[i], DType::kU8, root_);
  }
  std::string_view implementation() const override { return group_.backend(); }

 private:
  comm::Communicator& group_;
  int root_;
  std::vector<kernel::Slot> xs_;
  std::vector<int64_t> bytes_;
};

FLEETX_OP(broadcast_from)
    .input("xs", ir::Arity::kMany)
    .output("out", ir::Arity::kMany)
    .required_attr("group", ir::AttrType::kString)
    .attr("root", 0)
    .infer(infer)
    .kernel<BroadcastFrom>()
    .side_effect();

}  // namespace
}  // namespace fleetx
