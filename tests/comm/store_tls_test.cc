// The store where the user has certificates.
#include <gtest/gtest.h>

#include <thread>

#include "fleetx/comm/store.h"
#include "tests/support/certificates.h"
#include "tests/support/expect_error.h"

namespace fleetx::comm {
namespace {

using fleetx::testing::expect_error;

// Servers and clients with the certificates of "a" or "b"; empty: none.
class StoreWithTls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!certificates_.made()) GTEST_SKIP() << "the command openssl is not installed";
  }
  std::unique_ptr<StoreServer> serve(const std::string& who) const {
    certificates_.use(who);
    return std::make_unique<StoreServer>(StoreServer::Options{.secret = "secret"});
  }
  std::unique_ptr<StoreClient> connect(const StoreServer& server, const std::string& who,
                                       const std::string& secret = "secret",
                                       Milliseconds timeout = Milliseconds(20'000)) const {
    certificates_.use(who);
    return std::make_unique<StoreClient>(
        StoreOptions{.server = server.endpoint(), .secret = secret, .timeout = timeout});
  }

 private:
  const fleetx::testing::Certificates certificates_;
};

// Long values fill the buffers of both directions while other threads send and wait.
TEST_F(StoreWithTls, ValuesArrive) {
  const auto server = serve("a");
  const auto one = connect(*server, "a"), other = connect(*server, "a");
  const std::string large(size_t{3} << 20, 'x');
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      StoreClient& store = i % 2 == 0 ? *one : *other;
      for (int round = 0; round < 3; ++round) EXPECT_EQ(store.gather("all", i, 4, str(i))[3], "3");
      store.set(str("large/", i), large);
      EXPECT_TRUE(store.get(str("large/", (i + 1) % 4)) == large);
    });
  for (std::thread& t : threads) t.join();
  one->abort({3, "there", 1, "has failed", false});
  expect_error(Error::Kind::kComm, {"rank 3", "has failed"}, [&] { other->get("never"); });
}

TEST_F(StoreWithTls, StrangersAreRefused) {
  const auto encrypted = serve("a"), plain = serve("");
  expect_error(Error::Kind::kComm, {"FLEETX_TLS_CERT"}, [&] { connect(*encrypted, "b"); });
  expect_error(Error::Kind::kComm, {"FLEETX_TLS_CERT"}, [&] { connect(*plain, "a"); });
  // Each side waits for the other to begin.
  expect_error(Error::Kind::kTimeout, {"FLEETX_TLS_CERT"},
               [&] { connect(*encrypted, "", "secret", Milliseconds(300)); });
  expect_error(Error::Kind::kComm, {"secret"}, [&] { connect(*encrypted, "a", "another"); });
  EXPECT_NO_THROW(connect(*encrypted, "a"));
}

}  // namespace
}  // namespace fleetx::comm
