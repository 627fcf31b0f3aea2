#include "fleetx/data/http.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "fleetx/base/file.h"
#include "tests/data/http_server.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using namespace std::chrono_literals;
using testing::expect_error;
using testing::HttpServer;
using testing::TempDir;
using Starts = std::vector<uint64_t>;

const HttpOptions kQuick{.attempts = 3, .pause = 1ms};

std::string noise(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * i % 251);
  return text;
}

TEST(Http, TextsAndMissingFiles) {
  HttpServer server;
  server.put("/a.txt", "hello");
  server.put("/empty", "");
  EXPECT_EQ(http_get(server.url("/a.txt"), 5), "hello");
  EXPECT_EQ(http_get(server.url("/empty"), 5), "");
  EXPECT_EQ(http_find(server.url("/b.txt"), 5), std::nullopt);
  EXPECT_EQ(server.requests("/b.txt").size(), 1u) << "a 404 is an answer, not a failure";
  expect_error(Error::Kind::kInvalidArgument, {"/b.txt", "404"},
               [&] { http_get(server.url("/b.txt"), 5); });
  expect_error(Error::Kind::kCorrupt, {"/a.txt", "longer than 4 bytes"},
               [&] { http_get(server.url("/a.txt"), 4); });
}

TEST(Http, FailedRequestsAreRetried) {
  HttpServer server;
  server.behave("/twice", {.body = "late", .errors = 2});
  EXPECT_EQ(http_get(server.url("/twice"), 10, kQuick), "late");
  EXPECT_EQ(server.requests("/twice").size(), 3u);
  server.behave("/always", {.body = "never", .errors = 100});
  expect_error(Error::Kind::kComm, {"/always", "503", "3 attempts"},
               [&] { http_get(server.url("/always"), 10, kQuick); });
  server.behave("/closed", {.status = 403});
  expect_error(Error::Kind::kInvalidArgument, {"/closed", "403"},
               [&] { http_get(server.url("/closed"), 10, kQuick); });
  EXPECT_EQ(server.requests("/closed").size(), 1u);
}

TEST(Http, RedirectsStayWithHttp) {
  HttpServer server;
  server.put("/here", "found");
  server.behave("/there", {.redirect = "/here"});
  server.behave("/file", {.redirect = "file:///etc/passwd"});
  EXPECT_EQ(http_get(server.url("/there"), 10), "found");
  expect_error(Error::Kind::kInvalidArgument, {"/file"},
               [&] { http_get(server.url("/file"), 1000, kQuick); });
}

TEST(Http, ResumesAfterALostConnection) {
  HttpServer server;
  const TempDir dir;
  const std::string body = noise(100'000);
  // Far more cuts than attempts: every one of them makes progress.
  server.behave("/big", {.body = body, .cut_after = 9'000});
  http_download(server.url("/big"), dir / "big", kQuick);
  EXPECT_EQ(read_file(dir / "big"), body);
  const Starts starts = server.requests("/big");
  ASSERT_EQ(starts.size(), 12u);
  for (size_t i = 0; i < starts.size(); ++i) EXPECT_EQ(starts[i], i * 9'000);
}

TEST(Http, AnInterruptedRunIsResumed) {
  HttpServer server;
  const TempDir dir;
  const std::string body = noise(50'000);
  server.put("/f", body);
  dir.write("f", body.substr(0, 30'000));
  http_download(server.url("/f"), dir / "f");
  EXPECT_EQ(read_file(dir / "f"), body);
  EXPECT_EQ(server.requests("/f"), Starts{30'000});

  server.behave("/g", {.body = body, .ranges = false});
  dir.write("g", body.substr(0, 30'000));
  http_download(server.url("/g"), dir / "g");
  EXPECT_EQ(read_file(dir / "g"), body) << "a server without ranges sends all of it again";

  dir.write("h", body + "of another file");
  http_download(server.url("/f"), dir / "h", kQuick);
  EXPECT_EQ(read_file(dir / "h"), body) << "what is too long begins anew";
}

TEST(Http, UnreachableHostIsNamed) {
  std::string gone;
  {
    HttpServer server;
    gone = server.url("/x");
  }
  expect_error(Error::Kind::kComm, {gone, "3 attempts"}, [&] { http_get(gone, 10, kQuick); });
  expect_error(Error::Kind::kInvalidArgument, {"ftp://x"}, [] { http_get("ftp://x/y", 10); });
}

TEST(Http, StalledTransferTimesOut) {
  HttpServer server;
  server.behave("/mute", {.silent = true});
  const auto begin = std::chrono::steady_clock::now();
  expect_error(Error::Kind::kComm, {"/mute", "too slow"},
               [&] { http_get(server.url("/mute"), 10, {.attempts = 1, .stall_timeout = 1s}); });
  const auto enough = [] { throw std::runtime_error("enough"); };
  EXPECT_THROW(http_get(server.url("/mute"), 10, {.poll = enough}), std::runtime_error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST(Http, DiskErrorsAreReported) {
  HttpServer server;
  const TempDir dir;
  server.put("/f", noise(100'000));
  dir.write("file", "");
  expect_error(Error::Kind::kInvalidArgument, {"file/f", "Not a directory"},
               [&] { http_download(server.url("/f"), dir / "file/f"); });

  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{20'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error(Error::Kind::kUnsupported, {"cannot write", "File too large"},
               [&] { http_download(server.url("/f"), dir / "f"); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(server.requests("/f").size(), 1u) << "asking again does not help a disk";
}

TEST(Http, StopFlagCancels) {
  HttpServer server;
  server.behave("/f", {.body = "x", .errors = 1000});
  const std::atomic<bool> stop = true;
  expect_error(Error::Kind::kComm, {"/f"}, [&] {
    http_get(server.url("/f"), 10, {.attempts = 1000, .pause = 1h, .stop = &stop});
  });
}

TEST(Http, MirrorReplacesTheHost) {
  const std::string url = "https://data.example.com/sets/a.yaml";
  EXPECT_EQ(mirrored(url), url);
  setenv("FLEETX_MIRROR", "http://127.0.0.1:99/", 1);
  EXPECT_EQ(mirrored(url), "http://127.0.0.1:99/sets/a.yaml");
  EXPECT_EQ(mirrored("/a/file"), "/a/file");
  setenv("FLEETX_MIRROR", "somewhere", 1);
  expect_error(Error::Kind::kInvalidArgument, {"FLEETX_MIRROR", "somewhere"},
               [&] { mirrored(url); });
  unsetenv("FLEETX_MIRROR");
}

}  // namespace
}  // namespace fleetx::data
