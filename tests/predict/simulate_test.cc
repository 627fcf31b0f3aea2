#include "fleetx/predict/simulate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::predict {
namespace {

using testing::contains;
using testing::expect_error;

Task compute(double seconds) { return {.name = "work", .seconds = seconds}; }
Task call(int number, double seconds, const std::string& group = "dp") {
  return {
      .kind = Task::Kind::kCall, .name = "call", .group = group, .host_s = seconds, .call = number};
}
Task wait(int number) { return {.kind = Task::Kind::kWait, .name = "wait", .call = number}; }
Task message(int number, double seconds, const std::string& channel) {
  Task task = call(number, seconds, "pp");
  task.channel = channel;
  return task;
}

Timeline alone(std::vector<Task> tasks, double overlap = 1) {
  for (Task& task : tasks) task.overlap = overlap;
  return simulate({{.name = "rank 0", .tasks = std::move(tasks)}});
}

TEST(Simulate, NothingTakesNoTime) {
  EXPECT_EQ(alone({}).seconds, 0);
  EXPECT_EQ(alone({compute(0)}).seconds, 0);
}

TEST(Simulate, ComputationsFollowEachOther) {
  const Timeline t = alone({compute(1), compute(2)});
  EXPECT_DOUBLE_EQ(t.seconds, 3);
  EXPECT_DOUBLE_EQ(t.ranks[0].compute_s, 3);
  EXPECT_EQ(t.spans.size(), 2U);
}

TEST(Simulate, ACallIsHiddenBehindWork) {
  const Timeline t = alone({call(0, 1), compute(2), wait(0)});
  EXPECT_DOUBLE_EQ(t.seconds, 2);
  EXPECT_DOUBLE_EQ(t.ranks[0].exposed_s, 0);
}

TEST(Simulate, WhatIsNotHiddenIsExposed) {
  const Timeline t = alone({compute(1), call(0, 3), compute(2), wait(0), compute(1)});
  EXPECT_DOUBLE_EQ(t.seconds, 5);
  EXPECT_DOUBLE_EQ(t.ranks[0].compute_s, 4);
  EXPECT_DOUBLE_EQ(t.ranks[0].exposed_s, 1);
  EXPECT_NEAR(t.ranks[0].bubble_s, 0, 1e-12);
}

TEST(Simulate, CallsOfAGroupFollowEachOther) {
  const Timeline t = alone({call(0, 1), call(1, 1), wait(1), wait(0)});
  EXPECT_DOUBLE_EQ(t.seconds, 2);
  EXPECT_DOUBLE_EQ(t.ranks[0].exposed_s, 2);
}

// One has 1 s of work on the link, the other 3 s: both flow at half speed until the first ends.
TEST(Simulate, CallsOfTwoGroupsShareTheLink) {
  const Timeline t = alone({call(0, 1, "dp"), call(1, 3, "mp"), wait(0), compute(1), wait(1)});
  EXPECT_DOUBLE_EQ(t.seconds, 4);
  ASSERT_EQ(t.spans.size(), 3U);
  EXPECT_DOUBLE_EQ(t.spans[0].end, 2);  // dp
  EXPECT_DOUBLE_EQ(t.spans[2].end, 4);  // mp
  EXPECT_DOUBLE_EQ(t.ranks[0].exposed_s, 3);
}

TEST(Simulate, ComputationIsSlowerWhileCallsAreUnderWay) {
  // Half as fast for 2 s, then 3 s of 4 are left.
  EXPECT_DOUBLE_EQ(alone({call(0, 2), compute(4), wait(0)}, 0.5).seconds, 5);
}

TEST(Simulate, LatencyUsesNoLink) {
  Task slow = call(0, 1, "a");
  slow.latency_s = 2;
  EXPECT_DOUBLE_EQ(alone({slow, call(1, 2, "b"), wait(0), wait(1)}).seconds, 3);
}

// Two stages, two micro-batches: the second stage waits for the first message.
TEST(Simulate, StagesWaitForEachOther) {
  const Timeline t = simulate({{.name = "stage 0",
                                .tasks = {compute(1), message(0, 0.5, "a"), compute(1),
                                          message(1, 0.5, "a"), wait(0), wait(1)}},
                               {.name = "stage 1",
                                .tasks = {message(0, 0.5, "a"), message(1, 0.5, "a"), wait(0),
                                          compute(1), wait(1), compute(1)},
                                .host = 1}});
  EXPECT_DOUBLE_EQ(t.seconds, 3.5);
  EXPECT_DOUBLE_EQ(t.ranks[1].compute_s, 2);
  EXPECT_DOUBLE_EQ(t.ranks[1].exposed_s, 0.5);
  EXPECT_DOUBLE_EQ(t.ranks[1].bubble_s, 1);
}

TEST(Simulate, RanksThatWaitForeverAreNamed) {
  expect_error(Error::Kind::kInvalidArgument, {"wait for each other forever", "rank 0 at 'wait'"},
               [] {
                 alone({message(0, 1, "a"), wait(0)});
               });
}

TEST(Simulate, IsTheSameEveryTime) {
  std::vector<Task> tasks;
  for (int i = 0; i < 200; ++i) {
    tasks.push_back(compute(0.001 * (i % 7)));
    tasks.push_back(call(i, 0.0007 * (i % 5), i % 3 == 0 ? "dp" : "mp"));
  }
  for (int i = 0; i < 200; ++i) tasks.push_back(wait(i));
  const Timeline a = alone(tasks, 0.8), b = alone(tasks, 0.8);
  EXPECT_EQ(a.seconds, b.seconds);
  ASSERT_EQ(a.spans.size(), b.spans.size());
  for (size_t i = 0; i < a.spans.size(); ++i) EXPECT_EQ(a.spans[i].end, b.spans[i].end);
}

TEST(Simulate, ATimelineIsWrittenForPerfetto) {
  const testing::TempDir folder;
  alone({compute(1), call(0, 3), wait(0)}).save(folder / "t.json");
  std::ifstream in(folder / "t.json");
  std::stringstream text;
  text << in.rdbuf();
  for (const char* part : {"traceEvents", "\"dur\":1000000.0", "calls of group dp", "compute"})
    EXPECT_TRUE(contains(text.str(), part));
  expect_error(Error::Kind::kInvalidArgument, {"cannot write the time line"},
               [&] { alone({}).save(folder / "none/t.json"); });
}

}  // namespace
}  // namespace fleetx::predict
