#include "fleetx/data/checksum.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

TEST(Checksum, KnownValues) {
  const testing::TempDir dir;
  const std::string abc = dir.write("abc", "abc"), empty = dir.write("empty", "");
  const std::string md5 = "900150983cd24fb0d6963f7d28e17f72";
  const std::string sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(checksum(abc, md5), md5);
  EXPECT_EQ(checksum(abc, sha), sha);
  EXPECT_EQ(checksum(empty, md5), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_TRUE(matches(abc, "900150983CD24FB0D6963F7D28E17F72"));
  EXPECT_FALSE(matches(empty, md5));
  // More than one block.
  const std::string a = dir.write("a", std::string(2'500'000, 'a'));
  EXPECT_NE(checksum(a, md5), checksum(dir.write("b", std::string(2'499'999, 'a')), md5));
}

TEST(Checksum, RecognisesChecksums) {
  EXPECT_TRUE(is_checksum(std::string(32, 'f')));
  EXPECT_TRUE(is_checksum(std::string(64, '0')));
  EXPECT_FALSE(is_checksum(std::string(32, 'g')));
  EXPECT_FALSE(is_checksum(std::string(40, 'a')));
  EXPECT_FALSE(is_checksum(""));
}

}  // namespace
}  // namespace fleetx::data
