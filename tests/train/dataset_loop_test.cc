#include "fleetx/train/dataset_loop.h"

#include <gtest/gtest.h>

#include "fleetx/base/interrupt.h"
#include "fleetx/data/multi_slot.h"
#include "fleetx/ir/text.h"
#include "fleetx/kernel/servers.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::train {
namespace {

using testing::contains;
using testing::error_of;
using testing::TempDir;

const std::vector<data::Slot> kSlots{{"x", DType::kF32, 2}, {"ids", DType::kI64, -1}};

data::Samples two_samples() {
  return parse_lines("2 1 2 1 7\n2 3 4 3 8 9 10", *data::multi_slot_format(kSlots), "text");
}

// y = 2 x, over files of the slot x.
struct Doubling {
  explicit Doubling(int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += str("2 ", i, " ", i, "\n");
    file = folder.write("part-0", text);
    loop.inputs = {{"x", {2}}};
    loop.fetch = {"y"};
  }
  std::unique_ptr<data::Batches> batches(int64_t batch) const {
    return data::read_files(
        {.files = {file}, .format = data::multi_slot_format({kSlots[0]}), .batch = batch});
  }
  int64_t run(int64_t batch) { return loop.run(exe, program, scope, *batches(batch)); }

  TempDir folder;
  std::string file;
  ir::Program program = ir::parse_text(
      "program {seed=7}\n"
      "data x : f32[-1,2] stop_gradient\n"
      "var y : f32[-1,2]\n"
      "forward:\n"
      "y = scale(x) {scale=2.0}\n",
      "test");
  runtime::Scope scope;
  runtime::Executor exe;
  DatasetLoop loop;
};

TEST(DatasetLoop, SlotsBecomeFeeds) {
  const auto feeds = feeds_of(two_samples(), kSlots, {{"a", {1, 2}}, {"b", {1}, "b@LENGTHS"}});
  ASSERT_EQ(feeds.size(), 3u);
  EXPECT_EQ(feeds[0].first, "a");
  EXPECT_EQ(feeds[0].second.shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(feeds[0].second.data<float>()[3], 4.0f);
  EXPECT_EQ(feeds[1].second.shape(), (Shape{4, 1}));
  EXPECT_EQ(feeds[1].second.data<int64_t>()[3], 10);
  EXPECT_EQ(feeds[2].first, "b@LENGTHS");
  EXPECT_EQ(feeds[2].second.data<int64_t>()[0], 1);
  EXPECT_EQ(feeds[2].second.data<int64_t>()[1], 3);
  // What the program does not have is not fed; rows of a fixed width are sequences of one.
  const auto others = feeds_of(two_samples(), kSlots, {{"a", {2}, "a@LENGTHS"}, {""}});
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[1].second.data<int64_t>()[1], 1);
  EXPECT_TRUE(contains(error_of([] {
                         feeds_of(two_samples(), kSlots, {{"a", {2}}, {"b", {3}}});
                       }),
                       "slot 'b': 4 values do not fill rows of [3]"));
}

TEST(DatasetLoop, ShowsEveryPeriodWithOnePlanPerBatchSize) {
  Doubling d(7);
  std::vector<int64_t> shown;
  std::vector<float> first;
  d.loop.print_period = 2;
  d.loop.show = [&](int64_t number, const std::vector<Tensor>& values) {
    shown.push_back(number);
    first.push_back(values.at(0).data<float>()[0]);
  };
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(d.run(2), 4);
  EXPECT_EQ(shown, (std::vector<int64_t>{0, 2, 0, 2}));
  EXPECT_EQ(first, (std::vector<float>{0, 8, 0, 8}));
  EXPECT_EQ(d.exe.plans_made(), 2u);
}

TEST(DatasetLoop, CallsTheHandlerWhenItsTimeHasCome) {
  using Clock = std::chrono::steady_clock;
  Doubling d(5);
  int calls = 0;
  d.loop.handler = [&] {
    return ++calls < 3 ? Clock::time_point() : Clock::now() + std::chrono::hours(1);
  };
  EXPECT_EQ(d.run(1), 5);
  EXPECT_EQ(calls, 3);
  calls = 0;
  d.loop.handler_due = Clock::now() + std::chrono::hours(1);
  d.run(1);
  EXPECT_EQ(calls, 0);
}

TEST(DatasetLoop, EndsWithTheErrorOfACallbackOrAnInterrupt) {
  Doubling d(5);
  d.loop.show = [](int64_t, const std::vector<Tensor>&) { throw std::runtime_error("mine"); };
  EXPECT_THROW(d.run(1), std::runtime_error);
  d.loop.show = nullptr;
  const InterruptCheck check([] { throw std::runtime_error("stop"); });
  EXPECT_THROW(d.run(1), std::runtime_error);
}

// Notes what it is asked; rows are all 1.
class NotedServers final : public kernel::Servers {
 public:
  int parameter(std::string_view) override { return 0; }
  int table(std::string_view) override { return 0; }
  void pull_rows(std::span<const Lookup> lookups, bool) override {
    for (const Lookup& l : lookups) {
      calls.push_back(str("pull", ids_of(l)));
      std::fill_n(l.rows, l.count * 2, 1.0f);
    }
  }
  void expect_rows(std::span<const Lookup> lookups, bool) override {
    for (const Lookup& l : lookups) calls.push_back(str("expect", ids_of(l)));
  }
  void expect_no_more() override { calls.push_back("no more"); }
  void push(std::span<const Gradient>, std::span<const RowGradient>) override {}
  void pull(std::span<const Value>) override {}
  void start_with(std::span<const Value>) override {}
  void exchange(std::span<const Exchange>) override {}
  void count(const Uses&) override {}

  std::vector<std::string> calls;

 private:
  static std::string ids_of(const Lookup& l) {
    std::string text;
    for (int64_t i = 0; i < l.count; ++i) text += str(" ", l.ids[i]);
    return text;
  }
};

TEST(DatasetLoop, TellsTheServersWhatTheNextBatchLooksUp) {
  const auto servers = std::make_shared<NotedServers>();
  const kernel::ThreadServers here(servers);
  const ir::Program program = ir::parse_text(
      "program {seed=7}\n"
      "data ids : i64[-1,1] stop_gradient\n"
      "var e : f32[-1,1,2]\n"
      "forward:\n"
      "[e] = ps_pull_rows([ids]) {padding=[0], tables=[\"t\"], widths=[2]}\n",
      "test");
  const TempDir folder;
  const std::vector<data::Slot> slots{{"ids", DType::kI64, 1}};
  const auto run = [&](const std::string& text) {
    const auto batches = data::read_files({.files = {folder.write("part-0", text)},
                                           .format = data::multi_slot_format(slots),
                                           .batch = 2});
    runtime::Scope scope;
    runtime::Executor exe;
    const DatasetLoop loop{.inputs = {{"ids", {1}}}, .fetch = {"e"}};
    loop.run(exe, program, scope, *batches);
  };
  run("1 7\n1 8\n1 9\n1 0\n1 5\n");
  using Calls = std::vector<std::string>;
  EXPECT_EQ(servers->calls, (Calls{"expect 7 8", "expect 9", "pull 7 8", "expect 5", "pull 9",
                                   "pull 5", "no more"}));
  // The error of a batch does not take away the batch before it.
  servers->calls.clear();
  testing::expect_error(Error::Kind::kCorrupt, {"part-0:3"}, [&] { run("1 7\n1 8\n1 x\n1 9\n"); });
  EXPECT_EQ(servers->calls, (Calls{"expect 7 8", "pull 7 8", "no more"}));
}

TEST(DatasetLoop, WrongUse) {
  Doubling d(5);
  d.loop.print_period = 0;
  EXPECT_TRUE(contains(error_of([&] { d.run(1); }), "print_period is 0"));
  d.loop.print_period = 1;
  d.loop.inputs.clear();
  EXPECT_TRUE(contains(error_of([&] { d.run(1); }), "load it again"));
}

}  // namespace
}  // namespace fleetx::train
