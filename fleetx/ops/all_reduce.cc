// Averages over a group of ranks, computed beside everything else.
//   all_reduce_start: from here on the group computes out = the average of xs over its ranks, in
//       place: out are the same variables as xs. All ranks start the same calls in the same order,
//       and nobody touches the variables until
//   all_reduce_wait: has waited for the call that `ticket` stands for.
// Ranks are added up in their order: all get the same bits. f32 variables that the planner could
// put into one bucket (see kernel::Bucket) are one call on memory of the group, others one call
// each. `step` is for errors. A group of one does nothing.
//
// Ranks whose kernels chose different layouts would add up different elements. So each puts numbers
// that follow from its layouts behind the gradients: where their average is not the own ones,
// somebody has others.
#include <array>
#include <cstring>

#include "fleetx/comm/groups.h"
#include "fleetx/kernel/op.h"

namespace fleetx {
namespace {

constexpr int64_t kNothing = -1;  // ticket of a call that nobody has to wait for

void check_scalar(ir::Infer& c, std::string_view slot) {
  c.check(c.in(slot).dtype == i64 && c.in(slot).shape.numel() == 1, c.show(slot),
          "; expected i64[1]");
}

void infer(ir::Infer& c) {
  const DType dtype = c.in("xs").dtype;
  c.check(dtype == f32 || dtype == f64 || dtype == f16 || dtype == bf16, c.show("xs"),
          "; expected floating-point numbers");
  c.check(c.out_count("out") == c.count("xs"), "has ", c.count("xs"), " inputs and ",
          c.out_count("out"), " outputs");
  for (size_t i = 0; i < c.count("xs"); ++i) {
    const ir::TensorType& x = c.in("xs", i);
    c.check(x.kind == ir::VarKind::kDense && x.dtype == dtype, c.show("xs", i), ", but ",
            c.show("xs"), "; all must be dense and of one dtype");
    c.out("out", i) = x;
  }
}

void infer_start(ir::Infer& c) {
  infer(c);
  if (c.has("step")) check_scalar(c, "step");
  c.out("ticket") = {i64, {1}};
}

void infer_wait(ir::Infer& c) {
  infer(c);
  check_scalar(c, "ticket");
}

// The variables as they lie in memory, and the marks of their layouts behind them.
class Members {
 public:
  Members(kernel::Prepare& p, comm::Communicator& group) : dtype_(p.in("xs").dtype) {
    uint64_t hash = 0;
    for (size_t i = 0; i < p.count("xs"); ++i) {
      const kernel::Desc& x = p.in("xs", i);
      xs_.push_back(p.input_as_is("xs", i));
      p.output("out", i, x.layout);
      counts_.push_back(x.stored());
      bytes_ += align_up(x.bytes());
      hash = mix(hash, stable_hash(str(x.shape, x.layout)));
    }
    // Small enough for their sum over 2^14 ranks to be exact in f32.
    for (size_t i = 0; i < marks_.size(); ++i) marks_[i] = static_cast<float>(mix(hash, i) & 1023);
    if (dtype_ == f32) bucket_ = p.bucket("xs", group, sizeof marks_);
  }

  bool in_bucket(const kernel::Run& r) const { return r.raw(bucket_) != nullptr; }
  comm::Call whole(const kernel::Run& r) const {
    char* base = r.out<char>(bucket_);
    std::memcpy(base + bytes_, marks_.data(), sizeof marks_);
    return comm::Call::all_reduce(base, static_cast<int64_t>((bytes_ + sizeof marks_) / 4), f32,
                                  comm::ReduceOp::kAverage);
  }
  bool marks_agree(const kernel::Run& r) const {
    return std::memcmp(r.in<char>(bucket_) + bytes_, marks_.data(), sizeof marks_) == 0;
  }
  size_t count() const { return xs_.size(); }
  comm::Call single(const kernel::Run& r, size_t i) const {
    return comm::Call::all_reduce(r.raw(xs_[i]), counts_[i], dtype_, comm::ReduceOp::kAverage);
  }

 private:
  DType dtype_;
  std::vector<kernel::Slot> xs_;
  std::vector<int64_t> counts_;
  size_t bytes_ = 0;
  kernel::Slot bucket_;
  std::array<float, 16> marks_;
};

class Start final : public kernel::Kernel {
 public:
  explicit Start(kernel::Prepare& p)
      : group_(p.group(p.attr<std::string>("group"))),
        members_(p, group_),
        step_(p.input("step")),
        ticket_(p.output("ticket")) {}
  // A step that failed half-way leaves calls behind that work on memory of the plan.
  ~Start() override { group_.settle(); }

  void run(const kernel::Run& r) override {
    int64_t& ticket = *r.out<int64_t>(ticket_);
    ticket = kNothing;
    if (group_.size() == 1) return;
    if (step_) group_.set_step(*r.in<int64_t>(step_));
    if (members_.in_bucket(r)) {
      ticket = group_.post(members_.whole(r));
      return;
    }
    // They are done in this order: who waits for the last has waited for all.
    const size_t last = members_.count() - 1;
    for (size_t i = 0; i < last; ++i) (void)group_.start(members_.single(r, i));
    ticket = group_.post(members_.single(r, last));
  }
  std::string_view implementation() const override { return group_.backend(); }

 private:
  comm::Communicator& group_;
  Members members_;
  kernel::Slot step_, ticket_;
};

class Wait final : public kernel::Kernel {
 public:
  explicit Wait(kernel::Prepare& p)
      : group_(p.group(p.attr<std::string>("group"))),
        members_(p, group_),
        ticket_(p.input("ticket")) {}

  void run(const kernel::Run& r) override {
    const int64_t ticket = *r.in<int64_t>(ticket_);
    if (ticket == kNothing) return;
    group_.await(ticket);
    check_arg(!members_.in_bucket(r) || members_.marks_agree(r),
              "the workers keep these gradients in different layouts, so they cannot be added up: "
              "start all of them with the same FLEETX_MAX_ISA, FLEETX_SKIP and program");
  }
  std::string_view implementation() const override { return group_.backend(); }

 private:
  comm::Communicator& group_;
  Members members_;
  kernel::Slot ticket_;
};

FLEETX_OP(all_reduce_start)
    .input("xs", ir::Arity::kMany)
    .input("step", ir::Arity::kOptional)
    .output("out", ir::Arity::kMany)
    .output("ticket")
    .required_attr("group", ir::AttrType::kString)
    .infer(infer_start)
    .kernel<Start>()
    .side_effect();

FLEETX_OP(all_reduce_wait)
    .input("xs", ir::Arity::kMany)
    .input("ticket")
    .output("out", ir::Arity::kMany)
    .required_attr("group", ir::AttrType::kString)
    .infer(infer_wait)
    .kernel<Wait>()
    .side_effect();

}  // namespace
}  // namespace fleetx
