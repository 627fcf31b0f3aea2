// Who sleeps until a long message is complete is not woken before. That must not hide what else
// comes.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/comm/ranks.h"
#include "tests/support/expect_error.h"

namespace fleetx::testing {
namespace {

using namespace comm;

// The peer sends less than what is waited for.
const RegisterRankFn different_lengths("different_lengths", [](Communicator& c) {
  std::vector<char> data(1 << 20);
  if (c.rank() == 0) {
    const auto begin = Clock::now();
    expect_error(Error::Kind::kInvalidArgument, {"sent 100 bytes where 1048576 are expected"},
                 [&] { c.recv(data.data(), std::ssize(data), u8, 1); });
    EXPECT_LT(seconds_since(begin), 5);
  } else {
    std::this_thread::sleep_for(Milliseconds(300));
    c.send(data.data(), 100, u8, 0);
  }
});

// Short messages of another group, on the same connection.
const RegisterRankFn short_beside_long("short_beside_long", [](Communicator& c) {
  const auto other = c.group({0, 1});
  const int peer = 1 - c.rank();
  std::vector<char> data(1 << 20, static_cast<char>(7 * c.rank()));
  std::thread sleeper;
  if (c.rank() == 0)
    sleeper = std::thread([&] { other->recv(data.data(), std::ssize(data), u8, peer); });
  std::this_thread::sleep_for(Milliseconds(100));
  const auto begin = Clock::now();
  for (int32_t i = 0; i < 40; ++i) {
    int32_t got = 0;
    if (c.rank() == 0) c.send(&i, 1, i32, peer);
    c.recv(&got, 1, i32, peer);
    EXPECT_EQ(got, i);
    if (c.rank() == 1) c.send(&i, 1, i32, peer);
  }
  EXPECT_LT(seconds_since(begin), 1);  // 50 ms each, were they seen only when the sleeper looks
  if (c.rank() == 1) return other->send(data.data(), std::ssize(data), u8, peer);
  sleeper.join();
  EXPECT_EQ(std::count(data.begin(), data.end(), 7), std::ssize(data));
});

TEST(LongMessages, ShorterOneThanExpectedIsNoticed) {
  EXPECT_TRUE(run_ranks("tcp", "different_lengths", {.hosts = {0, 1}}));
}
TEST(LongMessages, DoNotDelayShortOnes) {
  EXPECT_TRUE(run_ranks("tcp", "short_beside_long", {.hosts = {0, 1}}));
}

}  // namespace
}  // namespace fleetx::testing
