// Kernels of the collective ops, see collective.cc.
//
// Ranks whose kernels chose different layouts would combine different elements. Where variables are
// reduced in the layouts in which they happen to be, each rank adds numbers that follow from its
// layouts, the marks: behind the variables of a bucket, else as one more call, in the ticket. Where
// the result is not what the own marks give, somebody has other layouts. All other calls move
// row-major variables, on which all CPUs agree.
#include <algorithm>
#include <array>
#include <cstring>

#include "fleetx/kernel/group.h"
#include "fleetx/ops/collective.h"

namespace fleetx::ops {
namespace {

using comm::Call;
using comm::CallKind;

void copy_unless_same(void* to, const void* from, size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

// The arguments of one op, and the calls that work on them.
class Calls {
 public:
  Calls(kernel::Prepare& p, const Collective& of, Form form, const kernel::Group& group)
      : of_(of), rank_(group.rank()), size_(group.size()) {
    read_attrs(p, group);
    const bool receives = of.call == CallKind::kRecv;
    const bool sends = of.call == CallKind::kSend;
    // What is started in place stays in its layout.
    as_is_ = form != Form::kBlocking && of.in_place &&
             (form == Form::kWait || p.op().in("xs") == p.op().out("out"));
    const char* made = sends && form != Form::kWait ? nullptr : "out";
    const char* read = receives && form != Form::kWait ? nullptr : "xs";
    const size_t count = read ? p.count(read) : p.out_count(made);
    for (size_t i = 0; i < count; ++i) {
      const kernel::Desc& x = read ? p.in(read, i) : p.out(made, i);
      const Layout layout = as_is_ ? x.layout : Layout::plain();
      xs_.push_back(read ? p.input(read, i, layout) : kernel::Slot());
      outs_.push_back(made ? p.output(made, i, layout) : kernel::Slot());
      dtype_ = x.dtype;
      elements_.push_back(as_is_ ? x.stored() : x.numel());
      bytes_.push_back(static_cast<size_t>(elements_.back()) * size_of(x.dtype));
    }
    if (as_is_) prepare_marks(p, group);
  }

  size_t count() const { return xs_.size(); }

  // What a group of one does.
  void copy(const kernel::Run& r) const {
    for (size_t i = 0; i < count(); ++i)
      if (xs_[i] && outs_[i]) copy_unless_same(r.raw(outs_[i]), r.raw(xs_[i]), bytes_[i]);
  }

  // Puts x where the call works on it.
  void stage(const kernel::Run& r, size_t i) const {
    if (of_.in_place) copy_unless_same(r.raw(outs_[i]), r.raw(xs_[i]), bytes_[i]);
    if (of_.call == CallKind::kAllGather) std::memcpy(own_part(r, i), r.raw(xs_[i]), bytes_[i]);
  }
  Call call(const kernel::Run& r, size_t i) const {
    const void* x = r.raw(xs_[i]);
    void* out = r.raw(outs_[i]);
    const int64_t n = elements_[i], all = static_cast<int64_t>(bytes_[i]);
    switch (of_.call) {
      case CallKind::kAllReduce: return Call::all_reduce(out, n, dtype_, op_);
      case CallKind::kReduce: return Call::reduce(out, out, n, dtype_, op_, root_);
      case CallKind::kReduceScatter: return Call::reduce_scatter(x, out, n / size_, dtype_, op_);
      // As bytes: every dtype travels.
      case CallKind::kBroadcast: {
        // The others may copy from x itself: it may be in shared memory (see
        // runtime/shared_state.h).
        Call broadcast = Call::broadcast(out, all, u8, root_);
        if (rank_ == root_) broadcast.in = x;
        return broadcast;
      }
      case CallKind::kAllGather: return Call::all_gather(own_part(r, i), out, all, u8);
      case CallKind::kAllToAll: return Call::all_to_all(x, out, all / size_, u8);
      case CallKind::kSend: return Call::send(x, all, u8, peer_, tag_);
      case CallKind::kRecv: return Call::recv(out, all, u8, peer_, tag_);
      case CallKind::kBarrier: break;
    }
    return Call::barrier();
  }
  // Of a reduction to one rank the others have no result.
  void finish(const kernel::Run& r, size_t i) const {
    if (of_.call == CallKind::kReduce && rank_ != root_) std::memset(r.raw(outs_[i]), 0, bytes_[i]);
  }

  // ---- one call for all ----
  bool in_bucket(const kernel::Run& r) const { return r.raw(bucket_) != nullptr; }
  Call whole(const kernel::Run& r) const {
    char* base = r.out<char>(bucket_);
    std::memcpy(base + bucket_bytes_, marks_.data(), marks_.size());
    const auto all = static_cast<int64_t>(bucket_bytes_ + marks_.size());
    const int64_t n = all / static_cast<int64_t>(size_of(dtype_));
    if (of_.call == CallKind::kBroadcast) return Call::broadcast(base, all, u8, root_);
    if (of_.call == CallKind::kReduce) return Call::reduce(base, base, n, dtype_, op_, root_);
    return Call::all_reduce(base, n, dtype_, op_);
  }
  bool whole_agrees(const kernel::Run& r) const {
    if (of_.call == CallKind::kReduce && rank_ != root_) return true;  // the root sees it
    return std::equal(reduced_marks_.begin(), reduced_marks_.end(),
                      r.in<char>(bucket_) + bucket_bytes_);
  }

  // ---- the marks of single calls ----
  bool has_marks() const { return as_is_; }
  Call marks_call(void* room) const {
    std::memcpy(room, plain_marks_.data(), sizeof plain_marks_);
    return Call::all_reduce(room, kMarks, f32, comm::ReduceOp::kAverage);
  }
  bool marks_agree(const void* room) const {
    return std::memcmp(room, plain_marks_.data(), sizeof plain_marks_) == 0;
  }

 private:
  char* own_part(const kernel::Run& r, size_t i) const {
    return r.out<char>(outs_[i]) + static_cast<size_t>(rank_) * bytes_[i];
  }

  void read_attrs(const kernel::Prepare& p, const kernel::Group& group) {
    if (of_.reduces) op_ = reduce_op_of(p.attr<std::string>("op")).value();
    if (of_.rooted) {
      root_ = p.attr<int>("root");
      check_arg(root_ < size_, group.op(), "root is rank ", root_, ", the group '", group.name(),
                "' has ", size_, " ranks");
    }
    if (of_.resizes)
      check_arg(size_ == p.attr<int64_t>("ranks"), group.op(), "the program is for ",
                p.attr<int64_t>("ranks"), " ranks, the group '", group.name(), "' has ", size_);
    if (!of_.is_message) return;
    peer_ = p.attr<int>("peer");
    tag_ = p.attr<int>("tag");
    check_arg(peer_ < size_, group.op(), "peer is rank ", peer_, ", the group '", group.name(),
              "' has ", size_, " ranks");
    check_arg(peer_ != rank_, group.op(), "peer is rank ", peer_, " of the group '", group.name(),
              "', which is this one");
  }

  void prepare_marks(kernel::Prepare& p, const kernel::Group& group) {
    uint64_t hash = 0;
    for (size_t i = 0; i < p.count("xs"); ++i) {
      const kernel::Desc& x = p.in("xs", i);
      bucket_bytes_ += align_up(x.bytes());
      hash = mix(hash, stable_hash(str(x.shape, x.layout)));
    }
    // Halves can tell these numbers apart, and their sum over 2^16 ranks is exact in f32.
    for (size_t i = 0; i < plain_marks_.size(); ++i)
      plain_marks_[i] = static_cast<float>(mix(hash, i) & 255);
    if (op_ == comm::ReduceOp::kProd) return;  // would not stay small
    if (dtype_ == f32 || !of_.reduces)
      put_marks<float>();
    else if (dtype_ == bf16)
      put_marks<BFloat16>();
    else if (dtype_ == f16)
      put_marks<Half>();
    if (!marks_.empty()) bucket_ = p.bucket("xs", group, marks_.size());
  }
  template <class T>
  void put_marks() {
    marks_.resize(kMarks * sizeof(T));
    reduced_marks_.resize(kMarks * sizeof(T));
    const auto factor =
        of_.reduces && op_ == comm::ReduceOp::kSum ? static_cast<float>(size_) : 1.0f;
    for (size_t i = 0; i < plain_marks_.size(); ++i) {
      const T mark(plain_marks_[i]), reduced(plain_marks_[i] * factor);
      std::memcpy(marks_.data() + i * sizeof(T), &mark, sizeof(T));
      std::memcpy(reduced_marks_.data() + i * sizeof(T), &reduced, sizeof(T));
    }
  }

  const Collective& of_;
  int rank_, size_;
  comm::ReduceOp op_ = comm::ReduceOp::kSum;
  int root_ = 0, peer_ = 0, tag_ = 0;
  bool as_is_ = false;
  DType dtype_ = f32;  // of all that are reduced
  std::vector<kernel::Slot> xs_, outs_;
  std::vector<int64_t> elements_;  // of x
  std::vector<size_t> bytes_;      // of x
  kernel::Slot bucket_;
  size_t bucket_bytes_ = 0;
  std::array<float, kMarks> plain_marks_ = {};
  std::vector<char> marks_, reduced_marks_;  // in the dtype of the bucket
};

class CollectiveKernel : public kernel::Kernel {
 public:
  CollectiveKernel(kernel::Prepare& p, const CollectiveOp& op)
      : group_(p.group(p.attr<std::string>("group"))), calls_(p, *op.collective, op.form, group_) {}
  void bind(const comm::Groups& groups) override { group_.bind(groups); }
  std::string_view implementation() const override { return group_.backend(); }

 protected:
  kernel::Group group_;
  Calls calls_;
};

class Blocking final : public CollectiveKernel {
 public:
  Blocking(kernel::Prepare& p, const CollectiveOp& op) : CollectiveKernel(p, op) {
    if (op.collective->call == CallKind::kSend) link_ = p.output("link");
    if (op.collective->call == CallKind::kRecv) p.input("link");
  }

  void run(const kernel::Run& r) override {
    if (link_) *r.out<float>(link_) = 0;
    if (group_.size() == 1) return calls_.copy(r);
    for (size_t i = 0; i < calls_.count(); ++i) {
      calls_.stage(r, i);
      group_->run(calls_.call(r, i));
      calls_.finish(r, i);
    }
  }

 private:
  kernel::Slot link_;
};

// What to check when a call is done; a ticket says it beside the call's number.
enum Marks : int64_t { kNone, kInBucket, kInTicket, kKinds };

class Start final : public CollectiveKernel {
 public:
  Start(kernel::Prepare& p, const CollectiveOp& op)
      : CollectiveKernel(p, op), step_(p.input("step")), ticket_(p.output("ticket")) {}
  // A step that failed half-way leaves calls behind that work on memory of the plan.
  ~Start() override {
    if (group_.bound()) group_->settle();
  }

  void run(const kernel::Run& r) override {
    auto* ticket = r.out<kernel::Ticket>(ticket_);
    *ticket = {};
    if (group_.size() == 1) return calls_.copy(r);
    if (step_) group_->set_step(*r.in<int64_t>(step_));
    if (calls_.in_bucket(r)) {
      ticket->number = group_->post(calls_.whole(r).recorded(&ticket->record)) * kKinds + kInBucket;
      return;
    }
    // They are done in this order: who waits for the last has waited for all.
    const bool marks = calls_.has_marks();
    const size_t before = calls_.count() - (marks ? 0 : 1);
    for (size_t i = 0; i < calls_.count(); ++i) calls_.stage(r, i);
    for (size_t i = 0; i < before; ++i)
      (void)group_->start(calls_.call(r, i).recorded(&ticket->record));
    const Call last = marks ? calls_.marks_call(ticket + 1) : calls_.call(r, before);
    ticket->number =
        group_->post(last.recorded(&ticket->record)) * kKinds + (marks ? kInTicket : kNone);
  }

 private:
  kernel::Slot step_, ticket_;
};

class Wait final : public CollectiveKernel {
 public:
  Wait(kernel::Prepare& p, const CollectiveOp& op)
      : CollectiveKernel(p, op), ticket_(p.input("ticket")) {
    if (op.collective->reads_late) p.inputs("held");
  }

  void run(const kernel::Run& r) override {
    const auto* ticket = r.in<kernel::Ticket>(ticket_);
    if (ticket->number == kernel::Ticket::kNone) return calls_.copy(r);
    group_->await(ticket->number / kKinds);
    const int64_t marks = ticket->number % kKinds;
    const bool agree = marks == kNone || (marks == kInBucket ? calls_.whole_agrees(r)
                                                             : calls_.marks_agree(ticket + 1));
    check_arg(agree, group_.op(), "the ranks of the group '", group_.name(),
              "' keep these variables in different layouts, so they cannot be combined: start all "
              "of them with the same FLEETX_MAX_ISA, FLEETX_SKIP and program");
    calls_.copy(r);
    for (size_t i = 0; i < calls_.count(); ++i) calls_.finish(r, i);
  }

 private:
  kernel::Slot ticket_;
};

}  // namespace

std::unique_ptr<kernel::Kernel> make_collective_kernel(kernel::Prepare& p) {
  const CollectiveOp op = collective_of(p.op().type());
  switch (op.form) {
    case Form::kBlocking: return std::make_unique<Blocking>(p, op);
    case Form::kStart: return std::make_unique<Start>(p, op);
    case Form::kWait: return std::make_unique<Wait>(p, op);
  }
  return nullptr;
}

}  // namespace fleetx::ops
