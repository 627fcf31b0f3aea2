#include "fleetx/data/download.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <numeric>

#include "fleetx/base/file.h"
#include "fleetx/data/checksum.h"
#include "tests/data/http_server.h"
#include "tests/data/make_archive.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::expect_error;
using testing::HttpServer;
using testing::make_archive;
using testing::TempDir;

constexpr int kParts = 5;
const std::string kMd5(32, '0');

// A server with a set of five archives of two files each.
class Downloads : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string list;
    for (int i = 0; i < kParts; ++i) {
      const std::string name = str("part-", i, i == 2 ? ".tar.gz" : ".tar");
      make_archive(dir_ / name, {{str("train/", i, "a.jpg"), std::string(50'000, 'a')},
                                 {str("train/", i, "b.jpg"), str("b", i)}});
      list += name + " " + checksum(dir_ / name, kMd5) + "\n";
      server_.put("/set/" + name, read_file(dir_ / name));
    }
    server_.put("/set/filelist.txt", list);
    server_.put("/set/meta.txt", "train.txt\nval.txt\n");
    server_.put("/set/train.txt", "train/0a.jpg 0\n");
    server_.put("/set/val.txt", "train/1a.jpg 1\n");
    server_.put("/set.yaml", "bos_path: \"" + server_.url("/set") + "\"\n");
  }

  DownloadOptions options() const {
    return {.yaml = server_.url("/set.yaml"),
            .folder = out_,
            .threads = 3,
            .http = {.attempts = 2, .pause = 1ms}};
  }
  size_t requests() const {
    size_t sum = 0;
    for (int i = 0; i < kParts; ++i)
      sum += server_.requests(str("/set/part-", i, i == 2 ? ".tar.gz" : ".tar")).size();
    return sum;
  }
  bool has(const std::string& name) const { return fs::exists(out_ + "/" + name); }

  HttpServer server_;
  const TempDir dir_;
  const std::string out_ = dir_ / "new/folder";
};

TEST_F(Downloads, DownloadsEverything) {
  const Downloaded first = download(options());
  EXPECT_EQ(first.fetched, kParts + 2);
  EXPECT_EQ(first.unpacked, 2u * kParts);
  for (int i = 0; i < kParts; ++i) {
    EXPECT_EQ(read_file(str(out_, "/train/", i, "a.jpg")).size(), 50'000u);
    EXPECT_EQ(read_file(str(out_, "/train/", i, "b.jpg")), str("b", i));
    EXPECT_FALSE(has(str("part-", i, ".tar"))) << "the archive is not kept beside its files";
  }
  EXPECT_EQ(read_file(out_ + "/train.txt"), "train/0a.jpg 0\n");
  EXPECT_EQ(read_file(out_ + "/val.txt"), "train/1a.jpg 1\n");

  const Downloaded second = download(options());
  EXPECT_EQ(second.kept, kParts);
  EXPECT_EQ(requests(), static_cast<size_t>(kParts)) << "nothing is fetched twice";
}

TEST_F(Downloads, ShardsAreDisjointAndComplete) {
  std::vector<int> seen(kParts, 0);
  for (int shard = 0; shard < 2; ++shard) {
    DownloadOptions o = options();
    o.folder = str(dir_ / "shard", shard);
    o.shard_num = 2;
    o.shard_id = shard;
    download(o);
    for (int i = 0; i < kParts; ++i) {
      const bool there = fs::exists(str(o.folder, "/train/", i, "a.jpg"));
      EXPECT_EQ(there, i % 2 == shard) << i;
      seen[static_cast<size_t>(i)] += there;
    }
    EXPECT_TRUE(fs::exists(o.folder + "/train.txt")) << "every machine needs the lists";
    EXPECT_TRUE(has_part_only(o.folder));
    o.shard_num = o.shard_id = -1;
    download(o);
    EXPECT_FALSE(has_part_only(o.folder)) << "the rest came";
  }
  EXPECT_EQ(seen, std::vector<int>(kParts, 1));
}

TEST_F(Downloads, WorkersOfOneMachineFetchOnce) {
  std::vector<std::future<Downloaded>> workers;
  for (int i = 0; i < 4; ++i)
    workers.push_back(std::async(std::launch::async, [&] { return download(options()); }));
  int archives = 0;
  for (auto& worker : workers) archives += static_cast<int>(worker.get().unpacked);
  EXPECT_EQ(archives, 2 * kParts);
  EXPECT_EQ(requests(), static_cast<size_t>(kParts));
}

TEST_F(Downloads, AFlakyServerAndAnInterruptedRun) {
  const std::string part = read_file(dir_ / "part-1.tar");
  server_.behave("/set/part-1.tar", {.body = part, .errors = 1});
  server_.behave("/set/part-3.tar", {.body = read_file(dir_ / "part-3.tar"), .cut_after = 10'000});
  fs::create_directories(out_);
  write_file(out_ + "/part-0.tar.part", read_file(dir_ / "part-0.tar").substr(0, 20'000));
  write_file(out_ + "/part-4.tar.part", "the beginning of something else");
  download(options());
  EXPECT_EQ(server_.requests("/set/part-0.tar"), std::vector<uint64_t>{20'000});
  EXPECT_EQ(server_.requests("/set/part-1.tar").size(), 2u);
  EXPECT_GT(server_.requests("/set/part-3.tar").size(), 3u);
  EXPECT_EQ(server_.requests("/set/part-4.tar").size(), 2u) << "a wrong beginning is thrown away";
  for (int i = 0; i < kParts; ++i) EXPECT_TRUE(has(str("train/", i, "a.jpg"))) << i;
}

TEST_F(Downloads, WrongChecksumIsAnError) {
  std::string bytes = read_file(dir_ / "part-3.tar");
  bytes[600] ^= 1;
  server_.put("/set/part-3.tar", bytes);
  expect_error(Error::Kind::kCorrupt,
               {"/set/part-3.tar", "sum", checksum(dir_ / "part-3.tar", kMd5)},
               [&] { download(options()); });
  EXPECT_FALSE(has("train/3a.jpg"));
  EXPECT_FALSE(has("train.txt")) << "the list appears only when all its pictures are there";
  EXPECT_FALSE(has("part-3.tar.part"));
  server_.put("/set/part-3.tar", read_file(dir_ / "part-3.tar"));
  download(options());
  EXPECT_TRUE(has("train/3a.jpg"));
}

TEST_F(Downloads, ErrorsNameMissingFiles) {
  server_.behave("/set/part-2.tar.gz", {.status = 404});
  expect_error(Error::Kind::kInvalidArgument, {"/set/part-2.tar.gz", "404"},
               [&] { download(options()); });
  server_.behave("/set/filelist.txt", {.status = 404});
  expect_error(Error::Kind::kInvalidArgument, {"/set/filelist.txt"}, [&] { download(options()); });
  DownloadOptions o = options();
  o.yaml = server_.url("/other.yaml");
  expect_error(Error::Kind::kInvalidArgument, {"/other.yaml", "404"}, [&] { download(o); });
  o.yaml = dir_ / "absent.yaml";
  expect_error(Error::Kind::kInvalidArgument, {"absent.yaml"}, [&] { download(o); });
  o = options();
  o.folder = dir_.write("file", "") + "/below";
  expect_error(Error::Kind::kInvalidArgument, {"file/below", "Not a directory"},
               [&] { download(o); });
}

TEST_F(Downloads, WithoutMetaTheUsualListsAreFetched) {
  server_.behave("/set/meta.txt", {.status = 404});
  server_.behave("/set/val.txt", {.status = 404});
  download(options());
  EXPECT_TRUE(has("train.txt"));
  EXPECT_FALSE(has("val.txt"));
}

TEST_F(Downloads, LocalFolderAsSource) {
  fs::create_directory(dir_ / "set");
  for (const char* name : {"filelist.txt", "meta.txt", "train.txt", "val.txt"})
    write_file(dir_ / "set/" + name, http_get(server_.url(std::string("/set/") + name), 10'000));
  for (int i = 0; i < kParts; ++i) {
    const std::string name = str("part-", i, i == 2 ? ".tar.gz" : ".tar");
    fs::copy(dir_ / name, dir_ / "set/" + name);
  }
  DownloadOptions o = options();
  o.yaml = dir_.write("set.yaml", "bos_path: set\n");
  EXPECT_EQ(download(o).fetched, kParts + 2);
  EXPECT_TRUE(has("train/4b.jpg"));
}

TEST_F(Downloads, CallerCanCancel) {
  server_.behave("/set/part-0.tar", {.body = "x", .errors = 1 << 20});
  DownloadOptions o = options();
  o.http = {.attempts = 1000, .pause = 10min};
  int calls = 0;
  o.poll = [&] {
    if (++calls == 3) throw std::runtime_error("enough");
  };
  EXPECT_THROW(download(o), std::runtime_error);
}

TEST(DownloadLists, ErrorsNameTheLine) {
  const auto files = parse_file_list("a.tar " + kMd5 + "\n\n  b/c.txt \r\n", "list");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].sum, kMd5);
  EXPECT_EQ(files[1].name, "b/c.txt");
  EXPECT_EQ(files[1].sum, "");
  constexpr auto kCorrupt = Error::Kind::kCorrupt;
  expect_error(kCorrupt, {"list:2", "a.tar xyz"}, [] { parse_file_list("b\na.tar xyz", "list"); });
  expect_error(kCorrupt, {"list:1", "../a"}, [] { parse_file_list("../a", "list"); });
  expect_error(kCorrupt, {"list:1", "/etc/x"}, [] { parse_file_list("/etc/x", "list"); });
}

TEST(DownloadLists, TheYamlSaysWhere) {
  EXPECT_EQ(parse_location("bos_path: http://s/d", "http://t/x.yaml"), "http://s/d");
  EXPECT_EQ(parse_location("bos_path: d", "http://t/e/x.yaml"), "http://t/e/d");
  EXPECT_EQ(parse_location("bos_path: d", "x.yaml"), "./d");
  constexpr auto kCorrupt = Error::Kind::kCorrupt;
  expect_error(kCorrupt, {"x.yaml"}, [] { parse_location("bos_path: [", "x.yaml"); });
  expect_error(kCorrupt, {"x.yaml", "bos_path"}, [] { parse_location("other: 1", "x.yaml"); });
  expect_error(kCorrupt, {"x.yaml", "bos_path"}, [] { parse_location("- 1", "x.yaml"); });
  expect_error(Error::Kind::kInvalidArgument, {"x.yaml", "`data_path`", "download_from_hdfs"},
               [] { parse_location("fs.default.name: afs://x\ndata_path: /d\n", "x.yaml"); });
}

}  // namespace
}  // namespace fleetx::data
