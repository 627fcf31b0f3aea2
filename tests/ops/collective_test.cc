// What all collective ops have in common. What each computes: the test of its name (reduce:
// reduce_to_one_test.cc; recv: send_test.cc).
#include <gtest/gtest.h>

#include "fleetx/ir/text.h"
#include "fleetx/passes/passes.h"
#include "fleetx/runtime/executor.h"
#include "tests/ops/collective_case.h"
#include "tests/support/alone.h"
#include "tests/support/expect_error.h"
#include "tests/support/op_case.h"
#include "tests/support/workers.h"

namespace fleetx::testing {
namespace {

struct Kind {
  const char* op;
  ir::Attrs attrs;  // for n ranks
  bool reads_late = false;
  bool in_place = false;
};

std::vector<Kind> kinds(int ranks) {
  return {{.op = "all_reduce", .attrs = {{"op", "sum"}}, .in_place = true},
          {.op = "reduce_scatter", .attrs = {{"op", "sum"}, {"ranks", ranks}}, .reads_late = true},
          {.op = "all_gather", .attrs = {{"ranks", ranks}}},
          {.op = "broadcast", .attrs = {{"root", 0}}, .in_place = true},
          {.op = "reduce", .attrs = {{"op", "sum"}, {"root", 0}}, .in_place = true},
          {.op = "all_to_all", .attrs = {{"ranks", ranks}}, .reads_late = true}};
}

ir::Attrs in_group(const Kind& kind, const char* group) {
  ir::Attrs attrs = kind.attrs;
  attrs.emplace("group", group);
  return attrs;
}

// Of one rank every result is what there was. (The ticket is a number that says nothing.)
const bool kCasesAdded = [] {
  const Tensors same{random({3, 4}, 1), random({5}, 2)};
  for (const Kind& kind : kinds(1)) {
    const ir::Attrs attrs = in_group(kind, "alone");
    AddCases(kind.op, [=](Cases& c) {
      c.add({.label = "alone",
             .inputs = {OpInput("xs", same)},
             .attrs = attrs,
             .outputs = {{"out", 2}},
             .reference = [](const Tensors& in) -> Tensors { return in; }});
      if (kind.in_place)
        c.add({.label = "alone_in_place",
               .inputs = {OpInput("xs", same).state()},
               .attrs = attrs,
               .updates = {{"out", "xs"}},
               .reference = [](const Tensors& in) -> Tensors { return in; },
               .gradient = false});
    });
    AddCases(str(kind.op, "_start"), [=](Cases& c) {
      c.add({.label = "alone",
             .inputs = {OpInput("xs", same)},
             .attrs = attrs,
             .outputs = {{"out", 2}},
             .reference = [](const Tensors& in) -> Tensors {
               return {in[0], in[1], Tensor()};
             },
             .gradient = false});
    });
    AddCases(str(kind.op, "_wait"), [=](Cases& c) {
      Tensor nothing(i64, {16});
      nothing.data<int64_t>()[0] = -1;
      OpCase wait{.label = "alone",
                  .inputs = {OpInput("xs", same), OpInput("ticket", nothing)},
                  .attrs = attrs,
                  .outputs = {{"out", 2}},
                  .reference = [](const Tensors& in) -> Tensors {
                    return {in[0], in[1]};
                  },
                  .gradient = false};
      if (kind.reads_late) wait.inputs.emplace_back("held", same);
      c.add(wait);
    });
  }
  return true;
}();

// Appends both forms of one collective of x.
void append(ir::Builder& b, const Kind& kind, const ir::Var& x) {
  const ir::Attrs attrs = in_group(kind, "dp");
  b.op(kind.op, {{"xs", std::vector{x}}}, attrs, {{"out", ir::Names{"y"}}});
  start_and_wait(b, kind.op, x, attrs, "z", kind.reads_late);
}

TEST(Collective, StaysWhereNobodyReadsIt) {
  for (const Kind& kind : kinds(2)) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    append(b, kind, b.data("x", f32, {4}));
    const std::string before = ir::to_text(main);
    passes::dce(main, {.keep = {}});
    EXPECT_EQ(ir::to_text(main), before);
  }
}

TEST(Collective, RanksMayFetchDifferentVariables) {
  run_workers(
      2,
      [](int rank, const SharedGroups& groups) {
        ir::Program main, startup;
        ir::Builder b(main, startup);
        const ir::Var x = b.data("x", f32, {4});
        int i = 0;
        for (const Kind& kind : kinds(2))
          b.op(kind.op, {{"xs", std::vector{x}}}, in_group(kind, "dp"),
               {{"out", ir::Names{str("y", i++)}}});
        b.op("scale", {{"x", x}}, {{"scale", 2.0}}, {{"out", "own"}});
        runtime::Scope scope;
        runtime::Executor exe({.plan = {.groups = groups}});
        const Tensor value = filled({4}, 1);
        for (int step = 0; step < 3; ++step) {
          const bool lazy = (rank + step) % 2 == 0;
          const auto out =
              exe.run(main, scope, {{"x", value}}, lazy ? ir::Names{} : ir::Names{"y0", "own"});
          if (!lazy) {
            EXPECT_EQ(out[0].data<float>()[3], 2);
          }
        }
      },
      comm::Milliseconds(5000));
}

// A temporary between start and wait must not take over memory that the call still works on.
TEST(Collective, MemoryIsLeftAloneWhileACallIsUnderWay) {
  for (const Kind& kind : kinds(2)) {
    run_workers(2, [&](int rank, const SharedGroups& groups) {
      ir::Program main, startup;
      ir::Builder b(main, startup);
      const Shape shape{64, 512};
      const ir::Attrs attrs = in_group(kind, "dp");
      const ir::Var x = b.op("scale", {{"x", b.data("x", f32, shape)}}, {{"scale", 1.0}});
      b.op(kind.op, {{"xs", std::vector{x}}}, attrs, {{"out", ir::Names{"want"}}});
      const ir::Var own = b.op("scale", {{"x", x}}, {{"scale", 1.0}});
      const ir::Results started = b.op(str(kind.op, "_start"), {{"xs", std::vector{own}}}, attrs,
                                       {{"out", ir::Names{"pending"}}});
      ir::Var other = x;
      for (int i = 0; i < 4; ++i) other = b.op("elementwise_add", {{"x", other}, {"y", x}});
      std::vector<ir::Arg> args{{"xs", std::vector{b.var("pending")}},
                                {"ticket", started["ticket"]}};
      if (kind.reads_late) args.emplace_back("held", std::vector{own});
      b.op(str(kind.op, "_wait"), args, attrs, {{"out", ir::Names{"got"}}});
      runtime::Scope scope;
      runtime::Executor exe({.plan = {.groups = groups}});
      const Tensor value = random(shape, static_cast<uint64_t>(rank));
      for (int step = 0; step < 5; ++step) {
        const auto out = exe.run(main, scope, {{"x", value}}, {"want", "got", other.name()});
        expect_close(out[1], out[0], 0, kind.op);
      }
    });
  }
}

TEST(Collective, AnyRankOfAMeshCanBePlannedAlone) {
  for (const Kind& kind : kinds(64)) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    append(b, kind, b.data("x", f32, {128}));
    for (const int rank : {0, 17, 63}) {
      const runtime::PlannedProgram plan = runtime::plan_program(
          main, {{"x", {f32, {128}}}}, {}, {.mesh = Mesh({{"dp", 64}}, rank)});
      const auto traffic = plan.traffic();
      ASSERT_TRUE(traffic.contains("dp")) << kind.op;
      EXPECT_EQ(traffic.at("dp").ranks, 64);
      EXPECT_EQ(traffic.at("dp").calls, 2) << kind.op;  // wait is none of its own
      EXPECT_GT(traffic.at("dp").bytes, 0) << kind.op;
    }
  }
}

TEST(Collective, TheProfileTellsOfEveryCall) {
  run_workers(2, [](int, const SharedGroups& groups) {
    ir::Program main, startup;
    ir::Builder b(main, startup);
    append(b, kinds(2).front(), b.data("x", f32, {250}));
    runtime::Scope scope;
    runtime::Executor exe({.profile = true, .plan = {.groups = groups}});
    for (int step = 0; step < 3; ++step) exe.run(main, scope, {{"x", filled({250}, 1)}}, {"z"});
    const auto& calls = exe.profile().calls();
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].name, "all_reduce y");
    EXPECT_EQ(calls[1].name, "all_reduce z");
    for (const runtime::Profile::CallRow& call : calls) {
      EXPECT_EQ(call.steps, 3);
      EXPECT_EQ(call.bytes, 3000);
      EXPECT_GT(call.seconds, 0);
      EXPECT_GT(call.waited_seconds, 0);
    }
    EXPECT_TRUE(contains(exe.profile().table(), "ms waited"));
  });
}

// ---- bad input ----

// The message of the error that one op of a text gives when it is planned for rank 0 of dp = 2.
std::string plan_error(const std::string& type, const std::string& line) {
  return error_of([&] {
    const ir::Program main = ir::parse_text("program\ndata x : " + type + "\nvar y : " + type +
                                            "\n\nforward:\n" + line + "\n");
    runtime::plan_program(main, {{"x", main.var("x").type}}, {}, {.mesh = Mesh({{"dp", 2}}, 0)});
  });
}

void expect_parts(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_TRUE(contains(message, part));
}

TEST(Collective, ErrorsNameOpAndGroup) {
  expect_parts(plan_error("f32[4]", R"([y] = all_reduce([x]) {group="mp", op="sum"})"),
               {"all_reduce", "'mp'", "dp"});
  expect_parts(plan_error("f32[4]", R"([y] = all_reduce([x]) {group="", op="sum"})"),
               {"all_reduce", "group"});
  expect_parts(plan_error("f32[4]", R"([y] = all_to_all([x]) {group="dp", ranks=4})"),
               {"all_to_all", "for 4 ranks", "'dp' has 2"});
  expect_parts(plan_error("f32[4]", R"([y] = broadcast([x]) {group="dp", root=2})"),
               {"broadcast", "root is rank 2", "'dp' has 2"});
}

TEST(Collective, ErrorsNameWhatDoesNotFit) {
  expect_parts(plan_error("f32[4]", R"([y] = all_reduce([x]) {group="dp", op="mean"})"),
               {"all_reduce", "\"mean\"", "average"});
  expect_parts(plan_error("bool[4]", R"([y] = all_reduce([x]) {group="dp", op="max"})"),
               {"all_reduce", "'x' is bool[4]"});
  expect_parts(plan_error("i64[4]", R"([y] = all_reduce([x]) {group="dp", op="average"})"),
               {"all_reduce", "'x' is i64[4]", "average"});
  expect_parts(plan_error("f32[5]", R"([y] = all_to_all([x]) {group="dp", ranks=2})"),
               {"all_to_all", "'x' is f32[5]", "multiple of ranks"});
  expect_parts(plan_error("f32[4]", R"([y] = all_to_all([x]) {group="dp", ranks=0})"),
               {"all_to_all", "ranks is 0"});
  expect_parts(plan_error("f32[4]", R"([y] = reduce([x]) {group="dp", op="sum", root=-1})"),
               {"reduce", "root is -1"});
}

TEST(Collective, AGroupOfAnotherSizeIsAnErrorBeforeTheFirstStep) {
  run_workers(3, [](int rank, const SharedGroups& groups) {
    for (const Kind& kind : kinds(4)) {
      ir::Program main, startup;
      ir::Builder b(main, startup);
      append(b, kind, b.data("x", f32, {8}));
      runtime::Scope scope;
      expect_error(
          Error::Kind::kInvalidArgument, {kind.op, "4 ranks in the group 'dp'", "the group has 3"},
          [&] {
            runtime::Executor({.plan = {.mesh = Mesh({{"dp", 4}}, rank), .groups = groups}})
                .run(main, scope, {{"x", filled({8}, 0)}});
          });
    }
  });
}

}  // namespace
}  // namespace fleetx::testing
