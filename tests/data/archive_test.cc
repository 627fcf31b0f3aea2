#include "fleetx/data/archive.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "fleetx/base/file.h"
#include "tests/data/make_archive.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

namespace fs = std::filesystem;
using Error::Kind::kCorrupt;
using testing::expect_error;
using testing::make_archive;
using testing::Member;
using testing::TempDir;

class Archives : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(out_); }
  uint64_t pack_and_unpack(const std::string& name, const std::vector<Member>& members,
                           UnpackLimits limits = {}) {
    make_archive(dir_ / name, members);
    return unpack(dir_ / name, out_, limits);
  }
  const TempDir dir_;
  const std::string out_ = dir_ / "out";
};

TEST_F(Archives, ExtractsFilesAndFolders) {
  for (const char* name : {"a.tar", "a.tar.gz", "a.zip"}) {
    EXPECT_TRUE(is_archive(name));
    const std::string body(200'000, name[3]);
    EXPECT_EQ(pack_and_unpack(name, {{"train/"}, {"train/a/1.jpg", body}, {"./b.txt", "b"}}), 2u);
    EXPECT_EQ(read_file(out_ + "/train/a/1.jpg"), body) << name;
    EXPECT_EQ(read_file(out_ + "/b.txt"), "b");
  }
  EXPECT_FALSE(is_archive("train.txt"));
}

TEST_F(Archives, NothingIsWrittenOutside) {
  const std::string absolute = dir_ / "absolute.txt";
  expect_error(kCorrupt, {"evil.tar", "../evil.txt", "outside"}, [&] {
    pack_and_unpack("evil.tar", {{"../evil.txt", "x"}});
  });
  expect_error(kCorrupt, {"a/../../evil.txt"}, [&] {
    pack_and_unpack("evil.tar", {{"a/../../evil.txt", "x"}});
  });
  expect_error(kCorrupt, {absolute}, [&] { pack_and_unpack("evil.tar", {{absolute, "x"}}); });
  EXPECT_FALSE(fs::exists(dir_ / "evil.txt"));
  EXPECT_FALSE(fs::exists(absolute));
}

TEST_F(Archives, LinksAreRefused) {
  expect_error(kCorrupt, {"'way'", "links"}, [&] {
    pack_and_unpack("evil.tar", {{.name = "way", .symlink = dir_.path()}, {"way/evil.txt", "x"}});
  });
  EXPECT_FALSE(fs::exists(dir_ / "evil.txt"));
  expect_error(kCorrupt, {"'pw'", "link"},
               [&] { pack_and_unpack("evil.tar", {{.name = "pw", .hardlink = "/etc/passwd"}}); });
  EXPECT_FALSE(fs::exists(out_ + "/pw"));
  // A link that was there before is replaced, not followed.
  dir_.write("precious", "keep");
  fs::create_symlink(dir_ / "precious", out_ + "/b.txt");
  pack_and_unpack("good.tar", {{"b.txt", "new"}});
  EXPECT_EQ(read_file(dir_ / "precious"), "keep");
  EXPECT_EQ(read_file(out_ + "/b.txt"), "new");
}

TEST_F(Archives, SizesAreBounded) {
  const std::vector<Member> bomb{{"a", std::string(1 << 20, '\0')}, {"b", "b"}};
  expect_error(kCorrupt, {"bomb.tar.gz", "more than 1000 bytes"},
               [&] { pack_and_unpack("bomb.tar.gz", bomb, {.bytes = 1000}); });
  EXPECT_LE(fs::file_size(out_ + "/a"), 1000u);
  expect_error(kCorrupt, {"more than 1 files"},
               [&] { pack_and_unpack("bomb.tar.gz", bomb, {.files = 1}); });
}

TEST_F(Archives, DamageIsNamed) {
  std::string noise(100'000, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * i % 65'521 >> 3);
  make_archive(dir_ / "a.tar.gz", {{"a", noise}, {"c", "c"}});
  const std::string bytes = read_file(dir_ / "a.tar.gz");
  write_file(dir_ / "cut.tar.gz", bytes.substr(0, bytes.size() / 2));
  expect_error(kCorrupt, {"cut.tar.gz", "damaged"}, [&] { unpack(dir_ / "cut.tar.gz", out_); });
  write_file(dir_ / "text.tar", "this is no archive at all");
  expect_error(kCorrupt, {"text.tar"}, [&] { unpack(dir_ / "text.tar", out_); });
}

}  // namespace
}  // namespace fleetx::data
