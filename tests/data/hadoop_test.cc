#include "fleetx/data/hadoop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "fleetx/base/file.h"
#include "fleetx/data/checksum.h"
#include "fleetx/data/download.h"
#include "tests/data/make_archive.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::expect_error;
using testing::make_archive;
using testing::TempDir;

constexpr int kPieces = 5;
const std::string kZeros(32, '0');

// A `hadoop` that serves the folder `cluster`. It writes every command into the file `calls`; a
// file `fail` has the code and the errors with which it fails, a file `hang` has the command that
// hangs.
const char* const kHadoop = R"sh(#!/bin/sh
root=$(dirname "$(dirname "$(dirname "$0")")")
[ "$1" = fs ] || { echo "unknown command $1" >&2; exit 2; }
shift
name= user=
while [ "$1" = -D ]; do
  case "$2" in
    fs.default.name=*) name=${2#*=} ;;
    hadoop.job.ugi=*) user=${2#*=} ;;
    *) echo "unknown setting $2" >&2; exit 2 ;;
  esac
  shift 2
done
echo "$*" >> "$root/calls"
echo "WARN util.NativeCodeLoader: Unable to load native-hadoop library" >&2
[ "$name" = hdfs://cluster:9000 ] || { echo "${1#-}: wrong address '$name'" >&2; exit 255; }
[ "$user" = me,secret ] || { echo "${1#-}: wrong user '$user'" >&2; exit 255; }
[ "$JAVA_HOME" = /some/java ] || { echo "Error: JAVA_HOME is not set" >&2; exit 1; }
to=$(echo "$3" | sed 's/%20/ /g; s/%25/%/g')  # a local name is an address
if [ "$(cat "$root/hang" 2>/dev/null)" = "$1" ]; then
  sleep 600 & echo $! > "$root/pid"
  [ "$1" = -get ] && echo half > "$to._COPYING_"
  wait
fi
if [ -e "$root/fail" ]; then { read code; cat >&2; } < "$root/fail"; exit "$code"; fi
case "$1" in
  -test) [ -e "$root/cluster$3" ] ;;
  -cat) cat "$root/cluster$2" ;;
  -get)
    [ -e "$root/cluster$2" ] || { echo "get: \`$2': No such file or directory" >&2; exit 1; }
    [ ! -e "$to" ] || { echo "get: \`$to': File exists" >&2; exit 1; }
    cp "$root/cluster$2" "$to" ;;
  *) echo "$1: Unknown command" >&2; exit 255 ;;
esac
)sh";

// A set of five archives in a cluster of its own.
class HadoopDownloads : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir_ / "installed/bin");
    fs::create_directories(dir_ / "cluster/set");
    const std::string program = dir_.write("installed/bin/hadoop", kHadoop);
    fs::permissions(program, fs::perms::owner_all);
    std::string list;
    for (int i = 0; i < kPieces; ++i) {
      make_archive(piece(i), {{str("train/", i, ".jpg"), str("picture ", i)}});
      list += str("part-", i, ".tar ", checksum(piece(i), kZeros), "\n");
    }
    dir_.write("cluster/set/filelist.txt", list);
    dir_.write("cluster/set/meta.txt", "train.txt\n");
    dir_.write("cluster/set/train.txt", "train/0.jpg 0\n");
    write_yaml("");
  }

  void write_yaml(const std::string& more) const {
    dir_.write("set.yaml",
               "fs.default.name: hdfs://cluster:9000\nhadoop.job.ugi: me,secret\n"
               "data_path: /set\njava_home: /some/java\nhadoop_home: " +
                   (dir_ / "installed") + "\n" + more);
  }
  DownloadOptions options() const {
    return {.yaml = dir_ / "set.yaml", .store = Store::kHadoop, .folder = out_, .threads = 3};
  }
  HadoopOptions files() const { return parse_hadoop(read_file(dir_ / "set.yaml"), "set.yaml"); }
  std::string piece(int i) const { return dir_ / str("cluster/set/part-", i, ".tar"); }
  // How many commands were run that contain these words.
  int calls(const std::string& words) const {
    std::istringstream lines(fs::exists(dir_ / "calls") ? read_file(dir_ / "calls") : "");
    int count = 0;
    for (std::string line; std::getline(lines, line);)
      count += line.find(words) != std::string::npos;
    return count;
  }
  bool has(const std::string& name) const { return fs::exists(out_ + "/" + name); }
  // Whether what a command that hung has started still runs (and is not only not yet reaped).
  bool hangs() const {
    const std::string stat = "/proc/" + read_file(dir_ / "pid").substr(0, 9);
    const std::string path = stat.substr(0, stat.find('\n')) + "/stat";
    for (int i = 0; i < 100; ++i, std::this_thread::sleep_for(10ms)) {
      std::ifstream file(path);
      std::string text;
      if (!std::getline(file, text) || text.find(") Z") != std::string::npos) return false;
    }
    return true;
  }

  const TempDir dir_;
  const std::string out_ = dir_ / "new folder/100%";
};

TEST_F(HadoopDownloads, FetchesASetOnce) {
  const Downloaded first = download(options());
  EXPECT_EQ(first.fetched, kPieces + 1);
  EXPECT_EQ(first.unpacked, static_cast<uint64_t>(kPieces));
  for (int i = 0; i < kPieces; ++i)
    EXPECT_EQ(read_file(str(out_, "/train/", i, ".jpg")), str("picture ", i));
  EXPECT_EQ(read_file(out_ + "/train.txt"), "train/0.jpg 0\n");
  EXPECT_EQ(download(options()).kept, kPieces);
  EXPECT_EQ(calls("-get /set/part-"), kPieces) << "nothing is fetched twice";
}

TEST_F(HadoopDownloads, ShardsAreDisjointAndComplete) {
  for (int shard = 0; shard < 2; ++shard) {
    DownloadOptions o = options();
    o.folder = str(dir_ / "shard", shard);
    o.shard_num = 2;
    o.shard_id = shard;
    download(o);
    for (int i = 0; i < kPieces; ++i)
      EXPECT_EQ(fs::exists(str(o.folder, "/train/", i, ".jpg")), i % 2 == shard) << i;
    EXPECT_TRUE(has_part_only(o.folder));
  }
}

TEST_F(HadoopDownloads, ChecksumsAndWhatWasInterrupted) {
  fs::create_directories(out_);
  write_file(out_ + "/part-0.tar.part", read_file(piece(0)).substr(0, 700));
  write_file(out_ + "/part-1.tar.part._COPYING_", "half");
  const std::string whole = read_file(piece(3));
  std::string damaged = whole;
  damaged[600] ^= 1;
  write_file(piece(3), damaged);
  expect_error(Error::Kind::kCorrupt, {"hdfs://cluster:9000/set/part-3.tar", "sum"},
               [&] { download(options()); });
  EXPECT_EQ(calls("-get /set/part-3.tar"), 1);
  EXPECT_FALSE(has("part-3.tar.part"));
  EXPECT_FALSE(has("train.txt"));
  write_file(piece(3), whole);
  download(options());
  for (int i = 0; i < kPieces; ++i) EXPECT_TRUE(has(str("train/", i, ".jpg"))) << i;
  EXPECT_FALSE(has("part-1.tar.part._COPYING_"));
}

TEST_F(HadoopDownloads, ErrorsOfTheCommand) {
  fs::remove(piece(2));
  expect_error(Error::Kind::kInvalidArgument,
               {"/bin/hadoop fs -get /set/part-2.tar", "code 1", "No such file or directory"},
               [&] { download(options()); });
  fs::remove(dir_ / "cluster/set/filelist.txt");
  expect_error(Error::Kind::kInvalidArgument,
               {"hdfs://cluster:9000/set/filelist.txt", "there is no such file"},
               [&] { download(options()); });
  // The code of "there is none".
  dir_.write("fail", "1\ntest: Call From here to cluster:9000 failed\n\tat java.base/X\n");
  expect_error(Error::Kind::kComm,
               {"fs -test -e /set/filelist.txt` ended with code 1", "Call From here to cluster"},
               [&] { download(options()); });
  dir_.write("fail", "1\nError: Could not find or load main class\n");
  expect_error(Error::Kind::kComm, {"-test", "Could not find or load main class"},
               [&] { download(options()); });
  dir_.write("installed/bin/hadoop", "no program\n");
  expect_error(Error::Kind::kComm, {"code 126", "cannot be started: Exec format error"},
               [&] { download(options()); });
  dir_.write("installed/bin/hadoop", kHadoop);
  dir_.write("fail", "127\n");
  expect_error(Error::Kind::kComm, {"code 127"}, [&] { download(options()); });
  try {
    download(options());
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
  }
}

TEST_F(HadoopDownloads, TheYamlSaysWhatIsMissing) {
  const auto refused = [&](Error::Kind kind, std::initializer_list<std::string_view> parts,
                           const std::string& yaml) {
    dir_.write("set.yaml", yaml);
    expect_error(kind, parts, [&] { download(options()); });
  };
  refused(Error::Kind::kCorrupt, {"set.yaml", "`hadoop_home`"}, "data_path: /set\n");
  refused(Error::Kind::kCorrupt, {"set.yaml", "`data_path`", "filelist.txt"}, "hadoop_home: /x\n");
  refused(Error::Kind::kCorrupt, {"set.yaml", "`data_path`"}, "hadoop_home: /x\ndata_path: [1]\n");
  refused(Error::Kind::kInvalidArgument, {"set.yaml: hadoop_home", "/nowhere/bin/hadoop"},
          "hadoop_home: /nowhere\ndata_path: /set\n");
  refused(Error::Kind::kInvalidArgument, {"set.yaml", "`bos_path`", "download_from_bos"},
          "bos_path: http://s/d\n");
  DownloadOptions o = options();
  o.store = Store::kServer;
  dir_.write("set.yaml", "hadoop_home: /x\ndata_path: /set\n");
  expect_error(Error::Kind::kInvalidArgument, {"set.yaml", "`data_path`", "download_from_hdfs"},
               [&] { download(o); });
}

TEST_F(HadoopDownloads, OneYamlForBoth) {
  write_yaml("bos_path: cluster/set\n");
  DownloadOptions o = options();
  o.folder = dir_ / "a";
  EXPECT_EQ(download(o).fetched, kPieces + 1);
  EXPECT_GT(calls(""), 0);
  fs::remove(dir_ / "calls");
  o.folder = dir_ / "b";
  o.store = Store::kServer;
  EXPECT_EQ(download(o).fetched, kPieces + 1);
  EXPECT_EQ(calls(""), 0);
}

TEST_F(HadoopDownloads, CallerCanCancel) {
  dir_.write("hang", "-get\n");
  DownloadOptions o = options();
  o.threads = 1;
  o.poll = [&] {
    if (fs::exists(dir_ / "pid") && fs::file_size(dir_ / "pid") > 0 &&
        has("part-0.tar.part._COPYING_"))
      throw std::runtime_error("enough");
  };
  EXPECT_THROW(download(o), std::runtime_error);
  EXPECT_FALSE(hangs());
  EXPECT_FALSE(has("part-0.tar.part._COPYING_"));
}

TEST_F(HadoopDownloads, ACommandThatHangsIsStopped) {
  dir_.write("hang", "-cat\n");
  HadoopOptions o = files();
  o.ask_timeout = 700ms;
  const Hadoop hadoop(o);
  EXPECT_EQ(hadoop.find("absent.txt", 100), std::nullopt);
  expect_error(Error::Kind::kTimeout, {"-cat /set/train.txt", "0.7 s"},
               [&] { (void)hadoop.find("train.txt", 100); });
  EXPECT_FALSE(hangs());
}

TEST_F(HadoopDownloads, LongTextsAndOddNames) {
  const Hadoop hadoop(files());
  dir_.write("cluster/set/long", std::string(300'000, 'x'));
  EXPECT_EQ(hadoop.find("long", 300'000), std::string(300'000, 'x'));
  expect_error(Error::Kind::kCorrupt, {"-cat /set/long", "more than 100000 bytes"},
               [&] { (void)hadoop.find("long", 100'000); });
  expect_error(Error::Kind::kInvalidArgument, {"-get /set/a\\[1\\].tar /x%20y/100%25"},
               [&] { hadoop.fetch("a[1].tar", "/x y/100%"); });
}

}  // namespace
}  // namespace fleetx::data
