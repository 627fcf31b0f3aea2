#include "fleetx/tensor/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "fleetx/base/file.h"
#include "fleetx/base/rng.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace fleetx {
namespace {

using testing::expect_error;
using testing::TempDir;
constexpr auto kCorrupt = Error::Kind::kCorrupt;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string file_with(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

void expect_corrupt(const std::string& file, std::initializer_list<std::string_view> parts) {
  SCOPED_TRACE(file);
  expect_error(kCorrupt, parts, [&] { parse_safetensors(bytes_of(file), "m.safetensors"); });
}

void expect_same(const Safetensors& a, const Safetensors& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, t] : a.tensors) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(b.tensors.contains(name));
    const Tensor& u = b.tensors.at(name);
    EXPECT_EQ(t.dtype(), u.dtype());
    EXPECT_EQ(t.shape(), u.shape());
    EXPECT_EQ(std::memcmp(t.raw(), u.raw(), t.bytes()), 0);
  }
}

Safetensors sample() {
  Safetensors s;
  s.metadata = {{"format", "fleetx"}, {"note", "quotes \" and \n lines"}};
  s.tensors["w"] = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  s.tensors["f64"] = Tensor::of<double>({2}, {1e300, -0.0});
  s.tensors["i32"] = Tensor::of<int32_t>({1, 1, 2}, {-7, 1 << 30});
  s.tensors["i64"] = Tensor::scalar<int64_t>(-(int64_t{1} << 60));
  s.tensors["half"] = Tensor::of<Half>({3}, {Half(1.5f), Half(-2.0f), Half(0.0f)});
  s.tensors["bf16"] = Tensor::of<BFloat16>({1}, {BFloat16(3.0f)});
  s.tensors["u8"] = Tensor::of<uint8_t>({5}, {0, 1, 2, 254, 255});
  Tensor flags(boolean, {3});
  flags.data<bool>()[1] = true;
  s.tensors["bool"] = flags;
  s.tensors["empty"] = Tensor(f32, {0, 4});
  s.tensors["scalar"] = Tensor(f32, {});
  return s;
}

TEST(Safetensors, EveryTypeSurvivesMemoryAndFile) {
  const Safetensors s = sample();
  expect_same(parse_safetensors(bytes_of(to_safetensors(s)), "memory"), s);
  const TempDir dir;
  save_safetensors(dir / "m.safetensors", s);
  expect_same(load_safetensors(dir / "m.safetensors"), s);
  EXPECT_EQ(read_file(dir / "m.safetensors"), to_safetensors(s));
  expect_same(parse_safetensors(bytes_of(to_safetensors({})), "nothing"), {});
}

TEST(Safetensors, LayoutIsAsTheFormatSays) {
  Safetensors s;
  s.tensors["b"] = Tensor::of<uint8_t>({3}, {1, 2, 3});
  s.tensors["a"] = Tensor::of<float>({1}, {0.0f});
  const std::string file = to_safetensors(s);
  const std::string header = R"({"a":{"data_offsets":[0,4],"dtype":"F32","shape":[1]},)"
                             R"("b":{"data_offsets":[4,7],"dtype":"U8","shape":[3]}})";
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(file.substr(8, header.size()), header);
  EXPECT_EQ(file.substr(8 + header.size(), length - header.size()),
            std::string(length - header.size(), ' '));
  EXPECT_EQ(file.size(), 8 + length + 7);
}

TEST(Safetensors, BlockedLayoutsAreSavedRowMajor) {
  Safetensors s;
  const Tensor plain = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  s.tensors["w"] = plain.to(Layout{{0, 1}, {{0, 4}}});
  const Safetensors back = parse_safetensors(bytes_of(to_safetensors(s)), "memory");
  EXPECT_TRUE(back.tensors.at("w").layout().is_plain());
  EXPECT_EQ(back.tensors.at("w").data<float>()[2], 3.0f);
}

TEST(Safetensors, DamageIsNamed) {
  expect_corrupt("", {"m.safetensors", "too few"});
  expect_corrupt(file_with("{}").substr(0, 9), {"beyond the end"});
  expect_corrupt(std::string(8, '\xff') + "{}", {"over the limit"});
  expect_corrupt(file_with("[]"), {"begin with '{'"});
  expect_corrupt(file_with(R"({"a")"), {"not JSON"});
  expect_corrupt(file_with("{}", "xx"), {"2 bytes", "belong to no tensor"});
  const std::string good = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_corrupt(file_with(R"({"a":)" + good + R"(,"a":)" + good + "}", "0000"), {"'a'", "twice"});
  expect_corrupt(file_with(R"({"a":)" + good + R"(,"b":)" + good + "}", "0000"),
                 {"'b'", "overlap", "ends at 4"});
  expect_corrupt(file_with(R"({"a":)" + good + "}", "000"), {"'a'", "not inside the 3 bytes"});
  expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "00000000"),
                 {"'a'", "gap"});
  expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "0000"),
                 {"'a'", "[2]", "needs 8 bytes", "[0,4]"});
  expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "0000"),
                 {"'a'", "[4,0]"});
  expect_corrupt(file_with(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "0000"),
                 {"'a'", "unknown dtype \"F31\""});
  expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[1]}})", "0000"), {"no data_offsets"});
  expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "0000"),
                 {"'a'", "shape", "-1"});
  expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", "0000"),
                 {"'a'", "1.5"});
  expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", "0000"),
                 {"'a'", "a list"});
  expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "0000"),
                 {"'a'", "1 numbers, not 2"});
  expect_corrupt(file_with(R"({"a":{"x":{"y":1}}})"), {"'a'", "an object"});
  expect_corrupt(file_with(R"({"__metadata__":{"k":1}})"), {"k", "number 1"});
  expect_corrupt(file_with(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02"),
                 {"'a'", "neither 0 nor 1"});
  // Products that overflow 64 bits, also next to a dimension of zero.
  for (const char* dims : {"4294967296,4294967296,4", "4294967296,4294967296,4294967296,0"})
    expect_corrupt(file_with(R"({"a":{"dtype":"F32","shape":[)" + std::string(dims) +
                             R"(],"data_offsets":[0,0]}})"),
                   {"'a'", "too large"});
}

TEST(Safetensors, NestingIsBounded) {
  expect_corrupt(file_with("{\"a\":" + std::string(1 << 20, '[')), {"a list"});
}

TEST(Safetensors, RandomDamageNeverDoesWorseThanAnError) {
  const std::string good = to_safetensors(sample());
  const Philox random(7, 0);
  int refused = 0;
  for (uint64_t trial = 0; trial < 3000; ++trial) {
    std::string file = good;
    const auto r = random.block(trial);
    if (r[0] % 4 == 0) file.resize(r[1] % file.size());
    for (uint32_t i = 0; i < r[0] % 3 && !file.empty(); ++i)
      file[random.bits(100000 + trial * 8 + i) % file.size()] =
          static_cast<char>(random.bits(200000 + trial * 8 + i));
    try {
      parse_safetensors(bytes_of(file), "damaged");
    } catch (const Error& e) {
      EXPECT_EQ(to_string(e.kind()), to_string(kCorrupt)) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Safetensors, BadNamesAreRefusedWhenSaving) {
  Safetensors s;
  s.tensors["\xff\xfe"] = Tensor::scalar(1.0f);
  expect_error(Error::Kind::kInvalidArgument, {"UTF-8"}, [&] { to_safetensors(s); });
  s.tensors = {{"__metadata__", Tensor::scalar(1.0f)}};
  expect_error(Error::Kind::kInvalidArgument, {"__metadata__"}, [&] { to_safetensors(s); });
  s.tensors = {{"t", Tensor()}};
  expect_error(Error::Kind::kInvalidArgument, {"'t'"}, [&] { to_safetensors(s); });
}

}  // namespace
}  // namespace fleetx
