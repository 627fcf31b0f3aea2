#include "fleetx/data/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "fleetx/base/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx::data {
namespace {

using Error::Kind::kCorrupt;
using testing::expect_error;

std::string idx(std::initializer_list<int> dims, const std::string& data) {
  std::string file{0, 0, 8, static_cast<char>(dims.size())};
  for (const int d : dims)
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(d >> shift);
  return file + data;
}

TEST(Idx, PlainAndCompressed) {
  const std::string file = idx({2, 3}, "abcdef");
  const testing::TempDir dir;
  write_file(dir / "plain", file);
  gzFile zip = gzopen((dir / "packed").c_str(), "wb");
  gzwrite(zip, file.data(), static_cast<unsigned>(file.size()));
  gzclose(zip);
  for (const char* name : {"plain", "packed"}) {
    const Tensor t = load_idx(dir / name);
    EXPECT_EQ(t.shape(), (Shape{2, 3}));
    EXPECT_EQ(t.data<uint8_t>()[5], 'f');
  }
  const std::string packed = read_file(dir / "packed");
  write_file(dir / "cut", packed.substr(0, packed.size() - 12));
  expect_error(kCorrupt, {"/cut", "cut short"}, [&] { load_idx(dir / "cut"); });
  std::string broken = packed;
  for (size_t i = 12; i < 20; ++i) broken[i] = '\x55';
  write_file(dir / "broken", broken);
  expect_error(kCorrupt, {"/broken"}, [&] { load_idx(dir / "broken"); });
}

TEST(Idx, DamageIsNamed) {
  expect_error(kCorrupt, {"f", "too few"}, [] { parse_idx("abc", "f"); });
  expect_error(kCorrupt, {"not an IDX"}, [] { parse_idx("abcdef", "f"); });
  std::string floats = idx({1}, "0000");
  floats[2] = 13;
  expect_error(kCorrupt, {"element type 13"}, [&] { parse_idx(floats, "f"); });
  expect_error(kCorrupt, {"[2,3]", "needs 6", "has 5"}, [] {
    parse_idx(idx({2, 3}, "abcde"), "f");
  });
  expect_error(kCorrupt, {"dimensions"}, [] { parse_idx(idx({2, 3}, "").substr(0, 9), "f"); });
  expect_error(kCorrupt, {"too large"}, [] { parse_idx(idx({-1, -1, -1, -1}, "abcde"), "f"); });
}

}  // namespace
}  // namespace fleetx::data
