// What a kernel sees when it is prepared, bound and run, on ops of program texts.
#include "fleetx/kernel/kernel.h"

#include <gtest/gtest.h>

#include "fleetx/ir/infer.h"
#include "fleetx/ir/text.h"
#include "fleetx/kernel/group.h"
#include "fleetx/kernel/op.h"
#include "fleetx/runtime/executor.h"
#include "tests/support/expect_error.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

using kernel::Desc;
using kernel::Prepare;
using kernel::Setting;
using kernel::Slot;

// The last op of a text, ready to be prepared.
class Prepared {
 public:
  explicit Prepared(const std::string& text, Setting setting = {})
      : program_(ir::parse_text(text)), setting_(std::move(setting)) {
    const auto type_of = [&](const std::string& name) -> const ir::TensorType& {
      return program_.var(name).type;
    };
    std::vector<Desc> in, out;
    const auto desc = [](const ir::TensorType& t) -> Desc {
      return {t.dtype, t.shape, Layout::plain(), t.kind, t.rows};
    };
    for (const ir::Names& names : op().inputs)
      for (const std::string& name : names) in.push_back(desc(type_of(name)));
    for (const auto& types : ir::infer_types(op(), type_of))
      for (const ir::TensorType& type : types) out.push_back(desc(type));
    prepare_ = std::make_unique<Prepare>(op(), in, out, setting_);
  }

  const ir::Op& op() const { return program_.ops().back(); }
  Prepare& operator*() { return *prepare_; }
  Prepare* operator->() { return prepare_.get(); }
  std::unique_ptr<kernel::Kernel> make() { return op().def->make_kernel(*prepare_); }

 private:
  ir::Program program_;
  Setting setting_;
  std::unique_ptr<Prepare> prepare_;
};

const char* const kDropout = R"(program
data x : f32[4,3]
var y : f32[4,3]
var m : u8[4,3]

forward:
y, m = dropout(x, _) {name="layer"} @ "net.cc":7
)";

const char* const kReduce = R"(program
data x : f32[4,3]
data z : f32[5]
var a : f32[4,3]
var b : f32[5]
var t : i64[16]

forward:
a = scale(x)
b = scale(z)
[a, b], t = all_reduce_start([a, b], _) {group="dp", op="average"} @ "net.cc":9
)";

TEST(Prepare, GivesDescriptionsAttributesAndSlots) {
  Prepared p(kDropout);
  EXPECT_EQ(p->in("x").shape, Shape({4, 3}));
  EXPECT_EQ(p->in("x").bytes(), 48u);
  EXPECT_EQ(p->out("mask").dtype, u8);
  EXPECT_EQ(p->attr<double>("p"), 0.5);  // its default
  EXPECT_TRUE(p->has("x"));
  EXPECT_FALSE(p->has("step"));
  EXPECT_EQ(p->count("step"), 0u);
  EXPECT_EQ(p->input("x").index, 0);
  EXPECT_FALSE(p->input("step"));  // left out
  EXPECT_EQ(p->output("out").index, 1);
  EXPECT_EQ(p->output("mask").index, 2);
  EXPECT_EQ(p->scratch(100).index, 3);  // behind all arguments
  EXPECT_EQ(p->scratch(50).index, 4);
  EXPECT_EQ(p->scratch_bytes(), (std::vector<size_t>{100, 50}));
  expect_error(Error::Kind::kInternal, {"net.cc:7", "dropout 'layer'", "'step' is not given"},
               [&] { (void)p->in("step"); });
}

TEST(Prepare, RemembersTheLayoutsThatAKernelAsksFor) {
  Prepared p(kDropout);
  const Layout transposed{{1, 0}, {}};
  p->input("x", 0, transposed);
  p->output("out", 0, transposed);
  EXPECT_EQ(p->wanted_layouts()[0], transposed);
  EXPECT_EQ(p->made_layouts()[0], transposed);
  EXPECT_EQ(p->made_layouts()[1], Layout::plain());
}

TEST(Prepare, ListsHaveASlotForEachMember) {
  Prepared p(kReduce, {.mesh = Mesh({{"dp", 2}}, 0)});
  const auto slots = p->inputs("xs");
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[1].index, 1);
  EXPECT_EQ(p->output("ticket").index, 4);  // two inputs, two results
}

TEST(Prepare, ABucketNamesItsGroupAndItsMembers) {
  Prepared p(kReduce, {.mesh = Mesh({{"dp", 2}}, 0)});
  const Slot begin = p->bucket("xs", p->group("dp"), 64);
  ASSERT_EQ(p->buckets().size(), 1u);
  const kernel::Bucket& bucket = p->buckets()[0];
  EXPECT_EQ(bucket.group, "dp");
  EXPECT_EQ(bucket.inputs, (std::vector<int>{0, 1}));
  EXPECT_EQ(bucket.bytes, 128u);  // 48 and 20 bytes, each on a boundary of 64
  EXPECT_EQ(bucket.tail, 64u);
  EXPECT_EQ(begin.index, 5);
  EXPECT_EQ(bucket.place, 0u);
}

TEST(Prepare, RandomNumbersFollowSeedAndNameOnly) {
  const auto stream = [](const std::string& out, const std::string& attrs, uint64_t seed) {
    Prepared p("program\ndata x : f32[4]\nvar " + out + " : f32[4]\nvar m : u8[4]\n\nforward:\n" +
                   out + ", m = dropout(x, _)" + attrs + "\n",
               {.seed = seed});
    const kernel::RandomStream s = p->random_stream();
    return std::pair(s.seed, s.op);
  };
  EXPECT_EQ(stream("a", "", 5), stream("a", "", 5));
  EXPECT_EQ(stream("a", "", 5), stream("a@RECOMPUTE", "", 5));
  EXPECT_NE(stream("a", "", 5), stream("b", "", 5));
  EXPECT_EQ(stream("a", " {seed=9}", 5).first, 9u);
}

// ---- groups ----

TEST(Groups, AreKnownFromTheMeshWithoutPeers) {
  const Mesh mesh({{"pp", 2}, {"dp", 64}}, 64 + 17);
  Prepared p(kReduce, {.mesh = mesh});
  const kernel::Group dp = p->group("dp"), pp = p->group("pp");
  EXPECT_EQ(dp.size(), 64);
  EXPECT_EQ(dp.rank(), 17);
  EXPECT_EQ(pp.size(), 2);
  EXPECT_EQ(pp.rank(), 1);
  EXPECT_FALSE(dp.bound());
  const auto kernel = p.make();  // any rank of any mesh, in this process alone
  EXPECT_EQ(kernel->implementation(), "");
}

TEST(Groups, AreThoseOfTheProcessWhereTheMeshHasNoSuchAxis) {
  run_workers(3, [](int rank, const SharedGroups& groups) {
    Prepared p(kReduce, {.mesh = Mesh({{"mp", 2}}, 1), .groups = groups});
    EXPECT_EQ(p->group("dp").size(), 3);
    EXPECT_EQ(p->group("dp").rank(), rank);
    EXPECT_EQ(p->group("mp").size(), 2);
    kernel::Group dp = p->group("dp");
    dp.bind(*groups);
    EXPECT_EQ(&*dp, &groups->at("dp"));
    EXPECT_EQ(dp.backend(), dp->backend());
  });
}

TEST(Groups, ThatAreUnknownAreAnErrorThatNamesOpAndGroup) {
  expect_error(Error::Kind::kInvalidArgument, {"net.cc:9", "all_reduce_start", "'dp'", "(mp, pp)"},
               [] {
                 Prepared(kReduce, {.mesh = Mesh({{"mp", 2}, {"pp", 2}}, 0)}).make();
               });
  expect_error(Error::Kind::kInvalidArgument, {"net.cc:9", "'dp'", "fleet::init"},
               [] { Prepared(kReduce).make(); });
}

TEST(Groups, ThatDifferFromTheMeshAreAnErrorWhenBound) {
  run_workers(2, [](int rank, const SharedGroups& groups) {
    Prepared larger(kReduce, {.mesh = Mesh({{"dp", 4}}, rank)});
    expect_error(Error::Kind::kInvalidArgument,
                 {"all_reduce_start", "4 ranks in the group 'dp'", "has 2"},
                 [&] { larger.make()->bind(*groups); });
    Prepared other(kReduce, {.mesh = Mesh({{"dp", 2}}, 1 - rank)});
    expect_error(
        Error::Kind::kInvalidArgument,
        {"all_reduce_start", str("rank ", 1 - rank, " of the group 'dp'"), str("its rank ", rank)},
        [&] { other.make()->bind(*groups); });
    Prepared right(kReduce, {.mesh = Mesh({{"dp", 2}}, rank)});
    EXPECT_NO_THROW(right.make()->bind(*groups));
    EXPECT_THROW(right.make()->bind(comm::Groups()), Error);
  });
}

TEST(Groups, PlaceAlongAxesCountsTheFirstOneOutermost) {
  const Mesh mesh({{"pp", 2}, {"sharding", 3}, {"dp", 4}}, 1 * 12 + 2 * 4 + 1);
  Prepared p(kDropout, {.mesh = mesh});
  EXPECT_EQ(p->place_along({}), 0);
  EXPECT_EQ(p->place_along({"dp"}), 1);
  EXPECT_EQ(p->place_along({"sharding", "dp"}), 2 * 4 + 1);
  EXPECT_EQ(p->place_along({"dp", "sharding"}), 1 * 3 + 2);
  EXPECT_THROW(p->place_along({"mp"}), Error);
}

TEST(Groups, OpsSayWhetherTheyAreCollective) {
  const std::string head = R"(program
data x : f32[4,3]
param s : f32[3]
param b : f32[3]
state m : f32[3]
state v : f32[3]
var y : f32[4,3]
var p : f32[3]
var q : f32[3]

forward:
y, m, v, p, q = batch_norm(x, s, b, m, v))";
  EXPECT_FALSE(ir::is_collective(Prepared(head + "\n").op()));
  EXPECT_TRUE(
      ir::is_collective(Prepared(head + " {group=\"dp\"}\n", {.mesh = Mesh({{"dp", 2}}, 0)}).op()));
  EXPECT_TRUE(ir::is_collective(Prepared(kReduce).op()));
  EXPECT_TRUE(Prepared(kReduce).op().def->side_effect);
  EXPECT_FALSE(ir::is_collective(Prepared(kDropout).op()));
}

TEST(Groups, ACollectiveWithoutAGroupCannotBeRegistered) {
  expect_error(Error::Kind::kInternal, {"nameless", "'group'"}, [] {
    [[maybe_unused]] const ir::RegisterOp r =
        ir::OpRegistrar("nameless").infer(+[](ir::Infer&) {}).collective();
  });
}

// ---- binding by the planner ----

int prepared = 0, bound = 0;

// Kernels are prepared before any is bound, and each is bound once.
class Probe final : public kernel::Kernel {
 public:
  explicit Probe(Prepare& p) : x_(p.input("x")), out_(p.output("out")) {
    EXPECT_EQ(bound, 0);
    ++prepared;
  }
  void bind(const comm::Groups&) override {
    EXPECT_EQ(prepared, 3);
    ++bound;
  }
  void run(const kernel::Run& r) override {
    EXPECT_EQ(bound, 3);
    *r.out<float>(out_) = *r.in<float>(x_) + 1;
  }

 private:
  Slot x_, out_;
};

void infer_probe(ir::Infer& c) { c.out("out") = c.in("x"); }

FLEETX_OP(kernel_test_probe).input("x").output("out").infer(infer_probe).kernel<Probe>();

TEST(Kernel, IsBoundOnceAfterAllArePrepared) {
  const ir::Program program = ir::parse_text(R"(program
data x : f32[1]
var a : f32[1]
var b : f32[1]
var c : f32[1]

forward:
a = kernel_test_probe(x)
b = kernel_test_probe(a)
c = kernel_test_probe(b)
)");
  prepared = bound = 0;
  runtime::Scope scope;
  runtime::Executor exe;
  for (int step = 0; step < 2; ++step)
    EXPECT_EQ(exe.run(program, scope, {{"x", Tensor::of<float>({1}, {4})}}, {"c"})[0].item<float>(),
              7);
  EXPECT_EQ(bound, 3);
}

}  // namespace
}  // namespace fleetx::testing
