#include "fleetx/ps/wire.h"

#include <gtest/gtest.h>

#include <limits>

#include "fleetx/ps/stats.h"
#include "tests/support/expect_error.h"

namespace fleetx::ps::wire {
namespace {

using fleetx::testing::expect_error;
constexpr auto kDamaged = Error::Kind::kCorrupt;

TEST(Wire, HeadersSurviveARoundTrip) {
  const Header h{.kind = Kind::kPushSparse,
                 .table = 3,
                 .lr = 0.5f,
                 .request = 1ull << 40,
                 .sequence = 9,
                 .wait = 1ull << 33,
                 .count = 77,
                 .bytes = 1234};
  EXPECT_EQ(decode(encode(h)), h);
}

TEST(Wire, RefusesDamagedHeaders) {
  const HeaderBytes good = encode(Header{});
  const auto with = [&](size_t at, char value) {
    HeaderBytes bad = good;
    bad[at] = value;
    return bad;
  };
  expect_error(kDamaged, {"not of this protocol"}, [&] { decode(with(0, 'x')); });
  expect_error(kDamaged, {"unknown kind 0"}, [&] { decode(with(4, 0)); });
  expect_error(kDamaged, {"unknown kind 99"}, [&] { decode(with(4, 99)); });
  expect_error(kDamaged, {"flags"}, [&] { decode(with(5, static_cast<char>(128))); });
  expect_error(kDamaged, {"reserved"}, [&] { decode(with(6, 1)); });
  Header infinite;
  infinite.lr = std::numeric_limits<float>::infinity();
  expect_error(kDamaged, {"not finite"}, [&] { decode(encode(infinite)); });
}

TEST(Wire, IdsTravelAsDeltasWhereThatIsSmaller) {
  const auto back = [](const std::string& bytes, size_t count) {
    std::vector<uint64_t> ids(count);
    EXPECT_EQ(decode_deltas(bytes, ids), bytes.size());
    return ids;
  };
  const std::vector<uint64_t> small{7, 3, 999'999, 0, 0, 1'000'000};
  const std::string bytes = encode_deltas(small);
  EXPECT_EQ(bytes.size(), 1 + 1 + 3 + 3 + 1 + 3);
  EXPECT_EQ(back(bytes, small.size()), small);
  // Large ones among small ones; alone they are sent as they are.
  std::vector<uint64_t> mixed(64, 5);
  mixed[10] = UINT64_MAX;
  mixed[20] = uint64_t{1} << 63;
  EXPECT_EQ(back(encode_deltas(mixed), mixed.size()), mixed);
  EXPECT_EQ(encode_deltas(std::vector<uint64_t>{uint64_t{1} << 62, 3, uint64_t{1} << 61}), "");
  EXPECT_EQ(encode_deltas({}), "");
  std::vector<uint64_t> ids(small.size());
  for (size_t n = 0; n < bytes.size(); ++n)
    expect_error(kDamaged, {"deltas"}, [&] { decode_deltas(bytes.substr(0, n), ids); });
  expect_error(kDamaged, {"deltas"}, [&] { decode_deltas(std::string(20, '\xff'), ids); });
}

TEST(Wire, RefusesDamagedTexts) {
  const std::string hello =
      encode(Hello{.start = 1, .server = 2, .job = "tables", .pushes = {5, 6}});
  EXPECT_EQ(decode_hello(hello).job, "tables");
  EXPECT_EQ(decode_hello(hello).pushes, (std::vector<uint64_t>{5, 6}));
  for (size_t n = 0; n < hello.size(); ++n)
    expect_error(kDamaged, {}, [&] { decode_hello(hello.substr(0, n)); });
  expect_error(kDamaged, {"too many"}, [&] { decode_hello(hello + "x"); });
  const std::string welcome = encode(Welcome{.sequence = 4, .pushes = {1, 2}});
  EXPECT_EQ(decode_welcome(welcome).pushes, (std::vector<uint64_t>{1, 2}));
  for (size_t n = 0; n < welcome.size(); ++n)
    expect_error(kDamaged, {}, [&] { decode_welcome(welcome.substr(0, n)); });
}

TEST(Wire, StatisticsSurviveARoundTrip) {
  ServerStats s{.server = 1, .servers = 2, .seconds = 3};
  s.tables = {{.name = "t", .rows = 5}};
  s.workers = {{.worker = 0, .state = "connected", .sequence = 8}};
  const std::string bytes = encode(s);
  EXPECT_EQ(encode(decode_stats(bytes)), bytes);
  for (size_t n = 0; n < bytes.size(); ++n)
    expect_error(kDamaged, {}, [&] { decode_stats(bytes.substr(0, n)); });
  EXPECT_NE(to_text(s).find("table t: 5 rows"), std::string::npos);
  s.workers.push_back({.worker = 1, .state = "connected", .sequence = 3});
  s.workers.push_back({.worker = 2, .state = "gone", .sequence = 1});
  EXPECT_NE(to_text(s).find("workers are 5 pushes apart"), std::string::npos) << to_text(s);
}

}  // namespace
}  // namespace fleetx::ps::wire
