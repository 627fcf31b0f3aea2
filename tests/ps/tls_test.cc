// Workers, servers and copies over TLS; certificates that differ are named on both sides.
#include <gtest/gtest.h>

#include "fleetx/comm/tcp_tls.h"
#include "tests/ps/job.h"
#include "tests/support/certificates.h"
#include "tests/support/expect_error.h"

namespace fleetx::ps {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!certificates_.made()) GTEST_SKIP() << "the command openssl is not installed";
  }
  const testing::Certificates certificates_;
};

// Large tables, so that messages are cut in many records.
JobSpec large_job(int workers, Mode mode) {
  JobSpec job = small_job(workers, 2, mode, add_rule());
  job.dense[0].params[0].shape = {400, 500};
  job.sparse[0].dim = 64;
  return job;
}

std::vector<float> exchange(Client& client, const JobSpec& job) {
  Values values(job.dense[0]);
  if (client.worker() == 0) client.set_dense(0, values.const_pointers()).wait();
  std::vector<int64_t> ids(1000);
  std::vector<float> rows(ids.size() * 64);
  for (int step = 0; step < 5; ++step) {
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i) * (step + 1);
    const auto batch = std::make_shared<const IdBatch>(ids, job.servers);
    client.pull_sparse(0, batch, rows.data()).wait();
    client.push_sparse(0, batch, rows.data(), 0);
    client.push_dense(0, values.const_pointers(), 0);
    client.pull_dense(0, values.pointers()).wait();
  }
  client.flush();
  client.barrier();
  for (const auto& p : values.params) rows.insert(rows.end(), p.begin(), p.end());
  return rows;
}

// The result of worker 0 of two, in sync mode: the same bits in every run.
std::vector<float> result_of(const JobSpec& job) {
  Servers servers(job, [](ServerOptions& o) { o.threads = 2; });
  Client a(servers.client(0)), b(servers.client(1));
  std::thread other([&] {
    exchange(b, job);
    b.goodbye();
  });
  const std::vector<float> result = exchange(a, job);
  other.join();
  a.goodbye();
  servers.join();
  return result;
}

TEST_F(Tls, TrainsToTheSameBits) {
  const JobSpec job = large_job(2, Mode::kSync);
  const std::vector<float> plain = result_of(job);
  certificates_.use("a");
  EXPECT_EQ(result_of(job), plain);
}

TEST_F(Tls, OtherCertificatesAreNamedOnBothSides) {
  const JobSpec job = small_job(1, 1, Mode::kAsync, add_rule());
  certificates_.use("a");
  Servers servers(job);
  const std::string endpoint = servers.endpoints()[0];
  EXPECT_EQ(read_stats(endpoint, "s3cret", "default", milliseconds(5000)).servers, 1);
  ClientOptions options = servers.client(0);

  ::testing::internal::CaptureStderr();
  certificates_.use("b");
  expect_error(Error::Kind::kComm, {"parameter server 0", endpoint, "TLS", "FLEETX_TLS_CA"},
               [&] { Client client(options); });
  expect_error(Error::Kind::kComm, {endpoint, "TLS", "FLEETX_TLS_CA"},
               [&] { read_stats(endpoint, "s3cret", "default", milliseconds(5000)); });
  certificates_.use("");
  options.connect_timeout = milliseconds(600);
  expect_error(Error::Kind::kTimeout, {"parameter server 0", endpoint, "TLS", "FLEETX_TLS_CERT"},
               [&] { Client client(options); });
  certificates_.use("a");
  {
    Client client(options);
    client.goodbye();
  }
  servers.join();  // its log is complete
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("server 0 at " + endpoint + " refused a connection: does not agree on TLS"),
            std::string::npos)
      << log;
  EXPECT_NE(log.find("before it agreed on TLS"), std::string::npos) << log;
}

// Certificates are no matter of the secret, whoever of the two finds that they differ.
TEST_F(Tls, OtherCertificatesAreNoMatterOfTheSecret) {
  const JobSpec job = small_job(1, 1, Mode::kAsync, add_rule());
  certificates_.use("a");
  Servers servers(job);
  ClientOptions options = servers.client(0);
  options.secret_source = "the source";
  for (const char* variable : {"FLEETX_TLS_CERT", "FLEETX_TLS_CA"}) {
    certificates_.use("a");
    if (variable == std::string_view("FLEETX_TLS_CERT"))
      setenv("FLEETX_TLS_KEY", certificates_.file("b.key").c_str(), 1);
    setenv(variable, certificates_.file("b.pem").c_str(), 1);
    try {
      Client client(options);
      ADD_FAILURE() << "not refused";
    } catch (const Error& e) {
      const std::string_view what = e.what();
      EXPECT_NE(what.find("does not agree on TLS"), what.npos) << what;
      EXPECT_EQ(what.find("the source"), what.npos) << what;
      EXPECT_EQ(what.find("secret"), what.npos) << what;
    }
  }
  certificates_.use("a");
  options.secret = "another";
  expect_error(Error::Kind::kComm, {"secret", "the source"}, [&] { Client client(options); });
}

TEST_F(Tls, FilesThatCannotBeReadAreNamedWithTheReason) {
  const auto made = [&](const char* variable, const std::string& file) {
    certificates_.use("a");
    setenv(variable, file.c_str(), 1);
    comm::TlsContext::from_environment();
  };
  for (const char* variable : {"FLEETX_TLS_CERT", "FLEETX_TLS_KEY", "FLEETX_TLS_CA"})
    expect_error(Error::Kind::kInvalidArgument, {variable, "'/not/there'", "No such file"},
                 [&] { made(variable, "/not/there"); });
  expect_error(Error::Kind::kInvalidArgument, {"FLEETX_TLS_KEY", "not the key of the certificate"},
               [&] { made("FLEETX_TLS_KEY", certificates_.file("b.key")); });
}

TEST_F(Tls, AServerWithoutItNamesAWorkerThatHasIt) {
  const JobSpec job = small_job(1, 1, Mode::kAsync, add_rule());
  Servers servers(job);
  ::testing::internal::CaptureStderr();
  certificates_.use("a");
  expect_error(Error::Kind::kComm, {"parameter server 0", "does not agree on TLS"},
               [&] { Client client(servers.client(0)); });
  certificates_.use("");
  {
    Client client(servers.client(0));
    client.goodbye();
  }
  servers.join();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("it uses TLS and this process does not"), std::string::npos) << log;
}

// The whole conversation through a proxy that breaks it in the middle of a message.
TEST_F(Tls, ABrokenConnectionIsMadeAgain) {
  certificates_.use("a");
  const JobSpec job = small_job(1, 1, Mode::kAsync, add_rule());
  for (const auto from : {Proxy::From::kWorker, Proxy::From::kServer}) {
    Servers servers(job);
    Proxy proxy(servers.endpoints()[0]);
    ClientOptions options = servers.client(0);
    options.servers = {proxy.endpoint()};
    Client client(options);
    Values ones(job.dense[0]), values(job.dense[0]);
    for (auto& p : ones.params) std::ranges::fill(p, 1.0f);
    for (auto& p : values.params) std::ranges::fill(p, 0.0f);
    client.set_dense(0, values.const_pointers()).wait();
    proxy.break_after(from, proxy.passed(from) + 700);
    for (int i = 0; i < 20; ++i) client.push_dense(0, ones.const_pointers(), 0).wait();
    client.pull_dense(0, values.pointers()).wait();
    for (const auto& p : values.params)
      for (const float x : p) EXPECT_EQ(x, 20);
    EXPECT_EQ(proxy.broken(), 1);
    client.goodbye();
  }
}

}  // namespace
}  // namespace fleetx::ps
